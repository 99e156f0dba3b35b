"""Raise the right exception for a failed host call, through XLA or around it.

XLA replaces every exception of a host function by its own error, whose class is not always JAX's.
But an interrupt is not an error of the program: the caller of the program must get
KeyboardInterrupt. There are two ways around XLA. If no trace function is set, one is set
(`sys.settrace`) for the caller's frame: Python calls it on the way back from C++, before anything
can catch XLA's error, and the exception it raises replaces that error. If a debugger or coverage
already traces, the exception is set for the thread (`PyThreadState_SetAsyncExc`) as soon as XLA
has dropped ours; so it is on a Python where the other way was not tried.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

from ...recording import LoweredSite
from ..errors import HostCallError, attribute_of, forget_error, host_call_error, is_a
from ..trace import EAGER, IS_TRIED, stack_of
from ._ending import is_own, raise_in_thread

_raised: dict[int, weakref.ref] = {}  # errors that XLA has not dropped yet, by number


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
    caller = caller_of(sys._getframe(1))
    own = caller is not None and caller.f_code in EAGER
    if is_a(error, KeyboardInterrupt) and caller is not None and not own:
        if IS_TRIED and sys.gettrace() is None:
            _raise_at(caller, error)
        else:  # a debugger, coverage
            _raise_after(raised)
            forget_error(raised.number)  # the KeyboardInterrupt comes before JAX's error
    return raised


def _raise_at(caller: FrameType, error: KeyboardInterrupt) -> None:
    """Raise `error` in `caller` instead of the error XLA makes of it.

    Only a trace function sees an exception before any handler can catch it.
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
        # Python leaves a frame that is being exited out of the traceback, so add it.
        before = attribute_of(error, "__traceback__")
        raise BaseException.with_traceback(
            error, TracebackType(before, at, at.f_lasti, at.f_lineno)
        )

    caller.f_trace = interrupted
    sys.settrace(interrupted)


def _raise_after(raised: HostCallError) -> None:
    """Raise KeyboardInterrupt in this thread as soon as XLA has dropped `raised`."""
    thread, number = threading.get_ident(), raised.number
    # A weakref callback in C: one in Python would itself be interrupted.
    _raised[number] = weakref.ref(
        raised, functools.partial(raise_in_thread, thread, KeyboardInterrupt)
    )
    for known in [n for n, dropped in _raised.items() if dropped() is None]:
        del _raised[known]


def caller_of(frame: FrameType | None) -> FrameType | None:
    """Return the frame that called into a crossing; None on XLA's threads.

    For an eager call this is our own frame, one of `EAGER`.
    """
    callers = (one for one in stack_of(frame) if not is_own(one) or one.f_code in EAGER)
    return next(callers, None)
