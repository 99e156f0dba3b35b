"""Find the host calls that are running now, from the stacks of all threads; warn of those in JAX.

This costs nothing on the path of a host call: the frames of a crossing hold everything needed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from ... import jax_compat
from ...capabilities.lint import jax_inside, warn_once
from ...recording import Frame, JaxUse, LoweredSite, Recorder
from ...stack.call import HostFunction
from ...stack.dispatch import FINDERS, READERS, RECORDED_CALL, RECORDED_ELEMENTS, CallCount
from ...stack.trace import (
    JAX_FOLDER,
    WAITING,
    frames_of_threads,
    is_cell,
    is_user_code,
    stack_of,
)


class RunningCall(NamedTuple):
    """A host call that is running."""

    lowered: LoweredSite
    element: int  # -1: no batch element
    thread: str  # name of the thread
    start_ns: int | None  # of the recorder's clock; None: it began unrecorded
    recorder: Recorder | None  # the recorder that the call reports to
    number: int  # among the calls of its host function
    host: HostFunction | CallCount  # counts these calls; a CallCount for JAX's own callbacks
    stack: tuple[Frame, ...]  # of the user's code, innermost first
    in_jax: bool  # whether the host function is inside JAX
    returned: int = 0  # calls before it, of its loop or chunk, that are not recorded yet
    returned_ns: int = 0  # their time, as far as it is known


def running_calls(recorder: Recorder) -> list[RunningCall]:
    """Return the recorded host calls that are running in any thread, longest first."""
    found = [call for call in all_running_calls() if call.recorder is recorder]
    return sorted(found, key=lambda call: call.start_ns or 0)


def still_running(recorder: Recorder) -> list[tuple[Any, ...]]:
    """Return the recorded running host calls: each site, then the other fields of `Running`."""
    now = recorder.clock()
    return [
        (call.lowered, call.element, call.number, call.thread, now - start, call.stack)
        for call in running_calls(recorder)
        if (start := call.start_ns) is not None
    ]


def unfinished_programs() -> set[Any]:
    """Return the watched programs of which a run may go on, whichever thread dispatched it."""
    return jax_compat.unfinished_programs()


def all_running_calls() -> list[RunningCall]:
    """Return the host calls that are running in any thread, recorded or not."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = frames_of_threads()
    found = [
        call
        for ident, frame in frames.items()
        for call in calls_on_stack(frame, names.get(ident, f"thread {ident}"))
    ]
    return found + [
        _call(
            call.crossing, call.thread, call.element, call.start_ns, call.number, call.inside
        )._replace(returned=call.returned, returned_ns=call.returned_ns)
        for find in FINDERS
        for call in find(frames, names)
    ]


def awaits_workers(recorder: Recorder) -> bool:
    """Return whether a program waits for workers whose calls are not all in `recorder` yet.

    Between two chunks of batch elements no call may be running.
    """
    crossings = (
        frame.f_locals
        for innermost in frames_of_threads().values()
        for frame in stack_of(innermost)
        if frame.f_code in WAITING
    )
    return any(
        names.get("recorder") is recorder and names["lowered"].is_awaited for names in crossings
    )


def calls_on_stack(innermost: FrameType | None, thread: str) -> Iterator[RunningCall]:
    """Yield the host calls that the frame `innermost` and its callers are in, innermost first."""
    inside: list[FrameType] = []  # frames above the next host call
    stamps: list[int] | None = None  # of the loop over its batch elements
    frame = innermost
    while frame is not None:  # a loop: each lowering asks this, with hundreds of frames
        code = frame.f_code
        if code is RECORDED_ELEMENTS:
            stamps = frame.f_locals.get("stamps")
        look = READERS.get(code)
        if look is None:
            inside.append(frame)
        else:
            seen = look(frame.f_locals, stamps)
            if seen is not None:
                if code is RECORDED_CALL:  # JAX's frames around its own callback do not count
                    while inside and inside[-1].f_code.co_filename.startswith(JAX_FOLDER):
                        inside.pop()
                call = _call(frame.f_locals, thread, *seen, inside)
                yield call._replace(**_returned(stamps)) if stamps else call
            inside, stamps = [], None
        frame = frame.f_back


def _returned(stamps: Sequence[int]) -> dict[str, int]:
    return {"returned": len(stamps) - 1, "returned_ns": stamps[-1] - stamps[0]}


def _call(
    names: Mapping[str, Any],
    thread: str,
    element: int,
    start_ns: int | None,
    number: int,
    inside: list[FrameType],
) -> RunningCall:
    files = [frame.f_code.co_filename for frame in inside]
    stack = tuple(
        Frame(frame.f_code.co_name, file, frame.f_lineno or 0, cell=is_cell(file))
        for frame, file in zip(inside, files, strict=True)
        if is_user_code(file)
    )
    in_jax = any(file.startswith(JAX_FOLDER) for file in files)
    recorder = names.get("recorder")
    recorder = getattr(recorder, "whole", recorder)  # of a `QueuedRecorder`
    return RunningCall(
        names["lowered"], element, thread, start_ns, recorder, number, names["host"], stack, in_jax
    )


def notice_jax_inside() -> None:
    """Warn if a host call of this thread makes JAX lower a program, which linting may not find."""
    for call in calls_on_stack(sys._getframe(1), ""):
        warn_of_running(call)


def warn_of_running(call: RunningCall) -> None:
    """Warn of a running host call that is inside JAX now, once for each function body."""
    ours = call.host if isinstance(call.host, HostFunction) else None
    if ours is not None and call.in_jax and jax_compat.host_function_can_block():
        use = _place(call.stack[0]) if call.stack else jax_inside(ours)
        warn_once(ours.current, call.lowered.site, use or JaxUse("somewhere"))


def _place(frame: Frame) -> JaxUse:
    return JaxUse(f"in {frame.function}", frame.file, frame.line, frame.cell)
