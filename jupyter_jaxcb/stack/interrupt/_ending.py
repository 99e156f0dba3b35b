"""End host calls that are running Python code on XLA's threads.

An exception is set asynchronously and raised at the next bytecode of that thread. It is never set
for a thread that has moved on, where it would be raised in a call of another run. Once set, it is
raised before the crossing ends, because the crossing runs bytecode after the host function. On a
Python where that was not tried, host calls run to their end.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import functools
import itertools
import operator
import sys
from collections.abc import Collection
from types import CodeType, FrameType
from typing import Any

from ..errors import EndedError
from ..trace import (
    CROSSINGS,
    IS_TRIED,
    JAX_FOLDER,
    WAITING,
    frames_of_threads,
    is_below,
    is_own_module,
    is_recording,
    stack_of,
    without_collecting,
)

# Declared with an extra argument, which C ignores: a weakref callback is passed the reference.
raise_in_thread: Any = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_ulong, ctypes.py_object, ctypes.py_object
)(("PyThreadState_SetAsyncExc", ctypes.pythonapi))


def end_running() -> None:
    """Raise EndedError in every host call on XLA's threads, and end loops over batch elements.

    Calls of JAX's own callbacks end too. XLA's threads run nothing else in Python.
    """
    for thread, frame in frames_of_threads().items():
        crossing = outermost(frame)
        if is_own(crossing) or _is_of_jax(crossing):
            _end_elements(frame)
            while IS_TRIED and outermost(frame) is crossing and _is_in_host_function(frame):
                if _raise_at(thread, frame):
                    break
                frame = frames_of_threads().get(thread)
    _let_traced_code_go_on()


def end_call_in(thread: int, callers: Collection[CodeType] = CROSSINGS) -> None:
    """As `end_running`, for the host call that `thread` is in, if any.

    Args:
        thread: ident of the thread.
        callers: the functions that call host functions on it.
    """
    frame = frames_of_threads().get(thread)
    _end_elements(frame)
    while IS_TRIED and is_below(callers, frame) and _is_in_host_function(frame):
        if _raise_at(thread, frame):
            break
        frame = frames_of_threads().get(thread)
    _let_traced_code_go_on()


def _let_traced_code_go_on() -> None:
    """Keep CPython 3.11 from looping forever where a traced function begins.

    It does that while a flag says that a thread has an exception to raise, and a thread that is in
    C raises it late. Any thread that raises such an exception clears the flag; the other thread
    sets it again when it is back in Python.
    """
    if sys.version_info < (3, 12):
        _thread.start_new_thread(_raise_here, ())


def _raise_here() -> None:
    with contextlib.suppress(EndedError):
        raise_in_thread(_thread.get_ident(), EndedError, None)
        while True:
            pass


def outermost(frame: FrameType | None) -> FrameType | None:
    """Return the outermost frame of the stack of `frame`."""
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    return frame


def is_own(frame: FrameType | None) -> bool:
    """Return whether `frame` runs code of this package."""
    return frame is not None and is_own_module(frame.f_globals.get("__name__", ""))


def is_call_of_jax(frame: FrameType | None) -> bool:
    """Return whether a thread of XLA makes a host call of JAX's own callbacks at `frame`."""
    return _is_of_jax(outermost(frame))


def _is_of_jax(frame: FrameType | None) -> bool:
    """Return whether `frame` runs code of JAX: the outermost one of its own host calls does."""
    return frame is not None and frame.f_code.co_filename.startswith(JAX_FOLDER)


def _raise_at(thread: int, frame: FrameType | None) -> bool:
    """Raise EndedError in `thread` if it is at `frame`; return whether it was.

    From the comparison to the exception this runs in C, so no other thread runs in between. A
    garbage collection could let one run, so the collector is off.
    """
    now = map(operator.itemgetter(thread), itertools.starmap(sys._current_frames, [()]))
    there = itertools.compress((thread,), map(operator.is_, now, (frame,)))
    raised = map(raise_in_thread, there, itertools.repeat(EndedError), itertools.repeat(None))
    with contextlib.suppress(KeyError):  # the thread has left Python
        return without_collecting(functools.partial(any, raised))
    return False


def _is_in_host_function(frame: FrameType | None) -> bool:
    """Return whether an exception at `frame` would be one of the host function's.

    It is not in this package, nor in a function that this package has called to record a call or
    to handle an error: the crossing does not expect an exception there, and would lose the call.
    Nor below a crossing that waits.
    """
    if is_own(frame):
        return False
    return not any(
        one.f_code in WAITING or (is_own(one) and _keeps_account(one)) for one in stack_of(frame)
    )


def _keeps_account(frame: FrameType) -> bool:
    """Return whether a frame of this package records something, or handles an `error`."""
    return is_recording(frame) or "error" in frame.f_locals


def _end_elements(frame: FrameType | None) -> None:
    """Clear the guards of the crossings on the stack of `frame`, which ends their loops."""
    for one in stack_of(frame):
        guard = one.f_locals.get("guard") if one.f_code in CROSSINGS else None
        if isinstance(guard, bytearray):
            guard.clear()
