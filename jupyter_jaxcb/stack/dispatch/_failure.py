"""What a failed host call raises, into XLA and past it.

XLA makes an error of its own of whatever a host function raises, of a class that is not always
JAX's. An interrupt is no error of the program: whoever called it is to get KeyboardInterrupt. Two
ways lead past XLA. While nobody traces, a trace function (`sys.settrace`) is set for the caller's
frame: Python calls it on the way back from C++, before anybody can catch what XLA raised, and what
it raises comes instead. Where a debugger or coverage traces already, the exception is set for the
thread (`PyThreadState_SetAsyncExc`) as soon as XLA has dropped ours.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from types import FrameType, TracebackType
from typing import Any

from ...recording import LoweredSite
from ..core import EAGER
from ..errors import HostCallError, forget_error, host_call_error
from ._ending import is_own, raise_in_thread

_raised: dict[int, weakref.ref] = {}  # what is waited for to be dropped, by number


def report_failure(
    error: BaseException, lowered: LoweredSite, call: int, element: int | None = None
) -> HostCallError:
    """Keeps `error` for the user, and returns what is raised into XLA instead.

    To be called by a crossing. No name may refer to what it returns, or XLA cannot drop it.

    Args:
        error: what the host function raised, what is wrong with its answer, or an interrupt.
        lowered: the site.
        call: the number of the host call, among all of the host function.
        element: of a looped vmap.
    """
    told = host_call_error(error, lowered, call, element)
    caller = caller_of(sys._getframe(1))
    own = caller is not None and caller.f_code in EAGER
    if isinstance(error, KeyboardInterrupt) and caller is not None and not own:
        if sys.gettrace() is None:
            _raise_at(caller, error)
        else:  # a debugger, coverage
            _raise_after(told)
            forget_error(told.number)  # it comes before the error of JAX's does
    return told


def raise_in_caller(error: KeyboardInterrupt, at: FrameType | None) -> None:
    """Has the caller of the program get an interrupt that comes while our own code runs.

    At the first instruction of a crossing, nothing of the crossing can catch it.

    Args:
        error: what the signal handler is about to raise.
        at: the frame that the signal has interrupted.
    """
    caller = caller_of(at) if is_own(at) and sys.gettrace() is None else None
    if caller is not None and caller.f_code not in EAGER:
        _raise_at(caller, error)


def _raise_at(caller: FrameType, error: KeyboardInterrupt) -> None:
    """Has `error` raised in place of the one that XLA makes, whatever class that is.

    Only Python's tracing sees an exception before those who may catch it.
    """

    def interrupted(at: FrameType, event: str, argument: Any) -> None:
        frame: FrameType | None = at
        while frame is not None and frame is not caller:
            if is_own(frame):  # on the way out of the crossing
                return
            frame = frame.f_back
        sys.settrace(None)
        caller.f_trace = None
        if event == "exception" and argument[1] is error:  # raised already
            return
        # A frame that is being left when it is traced is in no traceback.
        raise error.with_traceback(TracebackType(error.__traceback__, at, at.f_lasti, at.f_lineno))

    caller.f_trace = interrupted
    sys.settrace(interrupted)


def _raise_after(told: HostCallError) -> None:
    """Has KeyboardInterrupt raised as soon as XLA has dropped `told` and Python code runs."""
    thread, number = threading.get_ident(), told.number
    # C all the way: a callback in Python would be interrupted itself.
    _raised[number] = weakref.ref(
        told, functools.partial(raise_in_thread, thread, KeyboardInterrupt)
    )
    for known in [n for n, dropped in _raised.items() if dropped() is None]:
        del _raised[known]


def caller_of(frame: FrameType | None) -> FrameType | None:
    """Who called into a crossing; None on a thread of XLA's. Eager calls are made by our own."""
    while frame is not None:
        if not is_own(frame) or frame.f_code in EAGER:
            return frame
        frame = frame.f_back
    return None
