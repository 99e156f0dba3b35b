"""Which host calls are running right now, read off the stacks of the threads they run in.

Nothing of it is on the path of a host call: the frames that `_dispatch` makes for each crossing
hold all there is to know, for as long as it lasts.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..recording import LoweredSite, Recorder
from . import _dispatch


class RunningCall(NamedTuple):
    """A host call that has not come back."""

    lowered: LoweredSite
    lane: int  # -1: no lane
    thread: str  # its name
    start_ns: int  # of the recorder's clock


def running_calls(recorder: Recorder) -> list[RunningCall]:
    """The recorded host calls that are running in any thread, longest first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = [
        call
        for ident, frame in sys._current_frames().items()
        for call in _calls(frame, recorder, names.get(ident, f"thread {ident}"))
    ]
    return sorted(found, key=lambda call: call.start_ns)


def _calls(frame: FrameType | None, recorder: Recorder, thread: str) -> Iterator[RunningCall]:
    while frame is not None:
        look = _LOOKS.get(frame.f_code)
        if look is not None:
            names = frame.f_locals
            seen = look(names) if names.get("recorder") is recorder else None
            if seen is not None:
                yield RunningCall(names["lowered"], seen[0], thread, seen[1])
        frame = frame.f_back


def _single(names: dict[str, Any]) -> tuple[int, int] | None:
    """Lane and start of a crossing that makes one host call; None before it, and after it."""
    return (-1, names["start"]) if "start" in names and "end" not in names else None


def _looped(names: dict[str, Any]) -> tuple[int, int] | None:
    """Lane and start of the call that a loop over lanes is at."""
    stamps = names.get("stamps")
    if not stamps or "stacked" in names:
        return None
    order, done = names["schedule"].order, len(stamps) - 1
    return (int(order[done]), stamps[-1]) if done < order.size else None


def _code_of(function: Callable, inner: str) -> CodeType:
    """The code of the function `inner` that `function` defines."""
    return next(
        code
        for code in function.__code__.co_consts
        if isinstance(code, CodeType) and code.co_name == inner
    )


_LOOKS = {
    _code_of(_dispatch.single_call, "cross"): _single,
    _dispatch._stack_recorded.__code__: _looped,
}
