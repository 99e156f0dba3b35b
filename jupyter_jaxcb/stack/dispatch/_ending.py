"""Ends the host calls that run on threads of XLA's, where Python is.

An exception is raised in such a thread at its next bytecode. It is never set for a thread that has
gone on meanwhile: it would be raised in a call of another run. And once it is set it is raised
before the crossing ends, whose code after the host function makes calls of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import operator
import sys
from types import FrameType
from typing import Any

from ..core import CROSSINGS, WAITING, frames_of_threads, is_own_module, without_collecting
from ..errors import EndedError

# With one argument too many: a weak reference hands itself over, and C does not mind.
raise_in_thread: Any = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_ulong, ctypes.py_object, ctypes.py_object
)(("PyThreadState_SetAsyncExc", ctypes.pythonapi))


def end_running() -> None:
    """Raises EndedError in every host call on a thread of XLA's; ends loops over batch elements."""
    for thread, frame in frames_of_threads().items():
        crossing = outermost(frame)
        if is_own(crossing):
            _end_elements(frame)
            while outermost(frame) is crossing and _is_in_host_function(frame):
                if _raise_at(thread, frame):
                    break
                frame = frames_of_threads().get(thread)


def outermost(frame: FrameType | None) -> FrameType | None:
    """Whom a thread, or XLA, has called first."""
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame


def is_own(frame: FrameType | None) -> bool:
    """Whether it is a frame of this package's."""
    return frame is not None and is_own_module(frame.f_globals.get("__name__", ""))


def _raise_at(thread: int, frame: FrameType | None) -> bool:
    """Raises EndedError in `thread` if it is at `frame`; whether it is.

    C all the way from the look to the exception: no other thread runs in between, unless garbage
    is collected, which may run anything.
    """
    with without_collecting():
        now = map(operator.itemgetter(thread), itertools.starmap(sys._current_frames, [()]))
        there = itertools.compress((thread,), map(operator.is_, now, (frame,)))
        raised = map(raise_in_thread, there, itertools.repeat(EndedError), itertools.repeat(None))
        with contextlib.suppress(KeyError):  # the thread has left Python
            return any(raised)
        return False


def _is_in_host_function(frame: FrameType | None) -> bool:
    """Whether a thread of XLA's is at code that is not ours, and comes back to a crossing."""
    if is_own(frame):
        return False
    while frame is not None:
        if frame.f_code in WAITING:
            return False
        frame = frame.f_back
    return True


def _end_elements(frame: FrameType | None) -> None:
    """Takes the batch elements away from the crossings of a thread of XLA's."""
    while frame is not None:
        guard = frame.f_locals.get("guard") if frame.f_code in CROSSINGS else None
        if isinstance(guard, bytearray):
            guard.clear()
        frame = frame.f_back
