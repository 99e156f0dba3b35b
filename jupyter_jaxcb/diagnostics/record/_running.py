"""Which host calls are running right now, read off the stacks of the threads they run in.

Nothing of it is on the path of a host call: the frames of crossings hold all there is to know, for
as long as they last.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from ...recording import Frame, LoweredSite, Recorder
from ...stack.core import JAX_FOLDER, HostFunction, is_user_code
from ...stack.dispatch import READERS, RECORDED_CALL, RECORDED_LANES, CallCount
from ._running_workers import Lane, lanes_of_workers


class RunningCall(NamedTuple):
    """A host call that has not come back."""

    lowered: LoweredSite
    lane: int  # -1: no lane
    thread: str  # its name
    start_ns: int | None  # of the recorder's clock; None: it was begun unrecorded
    recorder: Recorder | None  # that hears of it
    number: int  # among the calls of its host function
    host: HostFunction | CallCount  # that counts these; of a callback of JAX's own the latter
    stack: tuple[Frame, ...]  # of the user's code, innermost first
    in_jax: bool  # the host function is inside of JAX


def running_calls(recorder: Recorder) -> list[RunningCall]:
    """The recorded host calls that are running in any thread, longest first."""
    found = [call for call in all_running_calls() if call.recorder is recorder]
    return sorted(found, key=lambda call: call.start_ns or 0)


def still_running(recorder: Recorder) -> list[tuple[Any, ...]]:
    """The recorded host calls that have not come back: each site, then as `Running` has it."""
    now = recorder.clock()
    return [
        (call.lowered, call.lane, call.number, call.thread, now - start, call.stack)
        for call in running_calls(recorder)
        if (start := call.start_ns) is not None
    ]


def all_running_calls() -> list[RunningCall]:
    """The host calls that are running in any thread, recorded or not."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()
    found = [
        call
        for ident, frame in frames.items()
        for call in calls_on_stack(frame, names.get(ident, f"thread {ident}"))
    ]
    return found + [_of_worker(lane) for lane in lanes_of_workers(frames, names)]


def _of_worker(lane: Lane) -> RunningCall:
    crossing, call = lane.crossing, lane.call
    number = crossing["before"] + call + 1
    own = int(crossing["self"].order[call])
    return _call(crossing, lane.thread, own, lane.start_ns, number, lane.inside)


def calls_on_stack(frame: FrameType | None, thread: str) -> Iterator[RunningCall]:
    """The host calls that `frame` and its callers are in, innermost first."""
    inside: list[FrameType] = []  # of the call that is looked for
    stamps: list[int] | None = None  # of the loop over its lanes
    while frame is not None:
        code = frame.f_code
        if code is RECORDED_LANES:
            stamps = frame.f_locals.get("stamps")
        look = READERS.get(code)
        if look is None:
            inside.append(frame)
        else:
            seen = look(frame.f_locals, stamps)
            if seen is not None:
                if code is RECORDED_CALL:  # whose own frames around the host function come first
                    while inside and inside[-1].f_code.co_filename.startswith(JAX_FOLDER):
                        inside.pop()
                yield _call(frame.f_locals, thread, *seen, inside)
            inside, stamps = [], None
        frame = frame.f_back


def _call(
    names: Mapping[str, Any],
    thread: str,
    lane: int,
    start_ns: int | None,
    number: int,
    inside: list[FrameType],
) -> RunningCall:
    files = [frame.f_code.co_filename for frame in inside]
    stack = tuple(
        Frame(frame.f_code.co_name, file, frame.f_lineno or 0)
        for frame, file in zip(inside, files, strict=True)
        if is_user_code(file)
    )
    in_jax = any(file.startswith(JAX_FOLDER) for file in files)
    recorder = names.get("recorder")
    return RunningCall(
        names["lowered"], lane, thread, start_ns, recorder, number, names["host"], stack, in_jax
    )
