"""Ctrl-C, the stop button: host calls that are waiting are not made any more.

A host call does not know which run it is of. But the programs that a thread dispatches run one
after the other behind its back, so the runs that are to be ended are those in flight when the
interrupt came: until they are done, host calls on XLA's threads are refused. Nothing has to be
taken back afterwards, and a run that is dispatched later is never refused.
"""

from __future__ import annotations

import atexit
import functools
import math
import sys
import threading
import time
import weakref
from types import FrameType, TracebackType
from typing import Any

import jax

from ...recording import LoweredSite
from .. import jax_compat
from ..core import EAGER, HostFunction, any_lowered
from ..errors import HostCallError, NotCalledError, explain, forget_error
from ._ending import end_running, is_own, outermost, raise_in_thread
from ._in_flight import InFlight

_POLL_SECONDS = 0.005
_MOMENT_SECONDS = 0.5
NOT_CALLED = "not called, as its run was interrupted"

# While it is not over, host calls on XLA's threads are refused.
window: InFlight | _Stuck | None = None
_raised: dict[int, weakref.ref] = {}  # what is waited for to be dropped, by number


class _Stuck:
    """The main thread waits in C++, where no signal is looked at, for a program it runs itself."""

    def __init__(self) -> None:
        self._frame, self._at = _main_place()

    def over(self, patience: bool = False) -> bool:
        """Whether the main thread has gone on; `patience` is what `InFlight` needs."""
        frame, at = _main_place()
        return frame is not self._frame or at != self._at

    def wait(self, seconds: float) -> bool:
        """Whether it is over within `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.over() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return self.over()


def interrupt() -> None:
    """Refuses every host call that the programs in flight would still make.

    In those that are running EndedError is raised: Python code ends, C code is left to return.
    Ordering tokens of this thread are dropped, or every later ordered call would fail with the
    same error. May be called from a signal handler.
    """
    global window
    if not any_lowered():
        return
    in_flight = InFlight()
    jax_compat.forget_tokens()
    if in_flight.over():
        return
    in_flight.let_go()
    window = in_flight
    end_running()


def interrupt_main() -> None:
    """The same for a main thread that does not get to its signal handler; from another thread.

    It runs a program whose host calls XLA makes on other threads, and waits for them in C++. Does
    nothing if it goes on within a moment. An error of the refused call sets it free.
    """
    global window
    stuck = _Stuck()
    if window is None and not stuck.wait(_MOMENT_SECONDS):
        window = stuck
        end_running()


def _main_place() -> tuple[FrameType | None, int]:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return frame, -1 if frame is None else frame.f_lasti


def release() -> None:
    """Lets go of what an interrupt left behind, if it is over.

    Over several devices programs do not wait for each other: there nothing is refused any longer.
    """
    global window
    if window is not None and (window.over() or jax.local_device_count() > 1):
        window = None


def refuse() -> None:
    """Raises NotCalledError if this host call is of an interrupted run.

    To be called first thing in a crossing, while there is a `window`.
    """
    global window
    pending = window
    if pending is None or pending.over(patience=True):
        window = None
    elif _caller(sys._getframe(1)) is None:
        raise NotCalledError(NOT_CALLED)


def refuse_call(lowered: LoweredSite, host: HostFunction) -> None:
    """Raises what XLA is told if this call is of an interrupted run, see `refuse`."""
    try:
        refuse()
    except NotCalledError as error:
        raise explain(error, lowered, host.calls + 1, None) from None


def on_thread_of_xla() -> bool:
    """Whether this is inside of a host call that XLA makes behind Python's back."""
    return is_own(outermost(sys._getframe(1)))


def lanes_left(guard: bytearray, lanes: int) -> Any:
    """What comes after the last lane: nothing, or NotCalledError if it was not the last.

    Args:
        guard: one byte for each lane; an interrupt takes them away.
        lanes: how many there are.
    """
    if lanes and not guard:
        raise NotCalledError(NOT_CALLED)
    return
    yield


def passed_on(told: HostCallError, error: BaseException) -> HostCallError:
    """Sees to it that an interrupt of a host function becomes one of the program's caller.

    XLA makes an error of its own of whatever a host function raises, of a class that is not always
    JAX's.

    Args:
        told: what XLA is told instead of `error`; no name may refer to it, or it is not dropped.
        error: of a host function.
    """
    caller = _caller(sys._getframe(1))
    own = caller is not None and caller.f_code in EAGER
    if isinstance(error, KeyboardInterrupt) and caller is not None and not own:
        if sys.gettrace() is None:
            _raise_at(caller, error)
        else:  # a debugger, coverage
            _raise_after(told)
            forget_error(told.number)  # it comes before the error of JAX's does
    return told


def pass_on(error: KeyboardInterrupt, at: FrameType | None) -> None:
    """The same for one that a signal handler is about to raise, if it is in our own code.

    At the first instruction of a crossing, nothing of the crossing can catch it.

    Args:
        error: it is to be raised.
        at: the frame that the signal has interrupted.
    """
    caller = _caller(at) if is_own(at) and sys.gettrace() is None else None
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


def _caller(frame: FrameType | None) -> FrameType | None:
    """Who called into a crossing; None on a thread of XLA's. Eager calls are made by our own."""
    while frame is not None:
        if not is_own(frame) or frame.f_code in EAGER:
            return frame
        frame = frame.f_back
    return None


def interrupt_at_exit() -> None:
    """A script that ends with KeyboardInterrupt does not make the calls that are left.

    It ends with the one that is running: XLA's threads must not outlive Python. In a session what
    was interrupted last says nothing of its end.
    """
    if hasattr(sys, "ps1") or sys.flags.interactive:
        return
    if issubclass(getattr(sys, "last_type", None) or Exception, KeyboardInterrupt):
        interrupt()
        if window is not None:
            window.wait(math.inf)


atexit.register(interrupt_at_exit)
