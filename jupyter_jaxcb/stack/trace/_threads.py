"""Read the current frame of every thread without a deadlock."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FrameType
from typing import TypeVar

T = TypeVar("T")

# Reentrant, because a signal handler may call this again. Without a lock, two threads at once could
# leave the garbage collector off.
_lock = threading.RLock()


def without_collecting(function: Callable[[], T]) -> T:
    """Call `function` with the garbage collector off, because a collection may run any code.

    Not a context manager made of a generator: an interrupt in its ``__enter__`` would leave the
    lock to a generator that another thread may drop, and only its owner can release a lock.
    """
    with _lock:
        collects = gc.isenabled()
        try:
            gc.disable()
            return function()
        finally:
            if collects:
                gc.enable()


def frames_of_threads() -> dict[int, FrameType]:
    """As `sys._current_frames`, but never deadlocks on Python 3.11.

    `sys._current_frames` allocates objects while it holds an interpreter lock. If that triggers a
    garbage collection, another thread may run and need the same lock (python/cpython#106883).
    """
    return without_collecting(sys._current_frames)


def stack_of(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame, its caller, the caller of that, and so on; nothing for None."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_below(callers: Collection[CodeType], frame: FrameType | None) -> bool:
    """Return whether one of these functions is on the stack of `frame`."""
    return any(one.f_code in callers for one in stack_of(frame))
