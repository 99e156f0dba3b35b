"""Raise the right exception for a failed host call, through XLA or around it.

XLA replaces every exception of a host function by its own error, whose class is not always JAX's.
But an interrupt is not an error of the program: the caller of the program must get
KeyboardInterrupt. A trace function (`sys.settrace`) is set for the caller's frame. Python calls it
on the way back from C++, before anything can catch XLA's error, and the exception that it raises
replaces that error. If a debugger or coverage traces already, the exception is set for the thread
as soon as XLA has dropped ours.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import itertools
import sys
import threading
import weakref
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

from ...recording import LoweredSite
from ..errors import HostCallError, attribute_of, forget_error, host_call_error, is_a
from ..trace import EAGER, is_own_module, stack_of

_SET_EXCEPTION: Any = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.py_object
)(("PyThreadState_SetAsyncExc", ctypes.pythonapi))
_awaited: collections.deque[weakref.ref] = collections.deque(maxlen=16)  # until XLA drops an error


def raise_in_thread(thread: int, kind: type[BaseException] | None) -> None:
    """Let a thread raise an exception when it runs Python again; None: not any more."""
    _SET_EXCEPTION(thread, None if kind is None else id(kind), None)


def is_own(frame: FrameType | None) -> bool:
    """Return whether `frame` runs code of this package."""
    return frame is not None and is_own_module(frame.f_globals.get("__name__", ""))


def report_failure(
    error: BaseException,
    lowered: LoweredSite,
    call: int,
    element: int | None = None,
    arguments: Sequence[Any] = (),
) -> HostCallError:
    """Keep `error` for the user, and return the error to raise into XLA instead.

    Only crossings call this. They must not keep a reference to the returned error, or XLA cannot
    drop it.

    Args:
        error: the host function's exception, a result error, or an interrupt.
        lowered: the site.
        call: the number of the host call, counted per host function.
        element: the batch element of a looped vmap, if any.
        arguments: of the call; none if it is not known which call failed.
    """
    raised = host_call_error(error, lowered, call, element, arguments)
    callers = stack_of(sys._getframe(1))
    caller = next((at for at in callers if not is_own(at) or at.f_code in EAGER), None)
    # There is none on XLA's threads, and no error of XLA in an eager call.
    if caller is not None and caller.f_code not in EAGER and is_a(error, KeyboardInterrupt):
        if sys.gettrace() is None:
            _raise_on_return(caller, error)
        else:
            _raise_when_dropped(raised)
    return raised


def _raise_on_return(caller: FrameType, error: KeyboardInterrupt) -> None:
    """Raise `error` in `caller` instead of the error that XLA makes of it."""

    def returns(frame: FrameType, event: str, argument: Any) -> None:
        inside = itertools.takewhile(lambda at: at is not caller, stack_of(frame))
        if any(map(is_own, inside)):
            return  # on the way out of the crossing
        sys.settrace(None)
        caller.f_trace = None
        if event == "exception" and argument[1] is error:  # raised already
            return
        # Python leaves a frame that is being exited out of the traceback, so add it.
        before = attribute_of(error, "__traceback__")
        raise BaseException.with_traceback(
            error, TracebackType(before, frame, frame.f_lasti, frame.f_lineno)
        )

    caller.f_trace = returns
    sys.settrace(returns)


def _raise_when_dropped(raised: HostCallError) -> None:
    """Raise KeyboardInterrupt in this thread as soon as XLA has dropped `raised`."""
    # In C, because a function in Python would itself be interrupted.
    interrupt = functools.partial(_SET_EXCEPTION, threading.get_ident(), id(KeyboardInterrupt))
    _awaited.append(weakref.ref(raised, interrupt))
    forget_error(raised.number)  # the KeyboardInterrupt comes before JAX's error
