"""Ctrl-C, the stop button: host calls that are waiting are not made any more.

A host call does not know which run it is of. But the programs that a thread dispatches run one
after the other behind its back, so the runs that are to be ended are those in flight when the
interrupt came: until they are done, host calls on XLA's threads are refused. Nothing has to be
taken back afterwards, and a run that is dispatched later is never refused.
"""

from __future__ import annotations

import atexit
import math
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import jax

from ...recording import LoweredSite
from .. import jax_compat
from ..core import HostFunction, any_lowered, frames_of_threads
from ..errors import NotCalledError
from ._ending import end_running, is_own, outermost
from ._failure import caller_of, report_failure
from ._in_flight import InFlight

_POLL_SECONDS = 0.005
_MOMENT_SECONDS = 0.5
NOT_CALLED = "not called, as its run was interrupted"

# While it is not over, host calls on XLA's threads are refused.
window: InFlight | _Stuck | None = None


class _Stuck:
    """The main thread waits in C++, where no signal is looked at, for a program it runs itself."""

    def __init__(self) -> None:
        self._frame, self._at = _main_place()

    def is_done(self, patience: bool = False) -> bool:
        """Whether the main thread has gone on; `patience` is what `InFlight` needs."""
        frame, at = _main_place()
        return frame is not self._frame or at != self._at

    def wait(self, seconds: float) -> bool:
        """Whether it is over within `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.is_done() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return self.is_done()


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
    if in_flight.is_done():
        return
    in_flight.forget_finished()
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
    frame = frames_of_threads().get(threading.main_thread().ident or 0)
    return frame, -1 if frame is None else frame.f_lasti


def release() -> None:
    """Lets go of what an interrupt left behind, if it is over.

    Over several devices programs do not wait for each other: there nothing is refused any longer.
    """
    global window
    if window is not None and (window.is_done() or jax.local_device_count() > 1):
        window = None


def refuse() -> None:
    """Raises NotCalledError if this host call is of an interrupted run.

    To be called first thing in a crossing, while there is a `window`.
    """
    global window
    pending = window
    if pending is None or pending.is_done(patience=True):
        window = None
    elif caller_of(sys._getframe(1)) is None:
        raise NotCalledError(NOT_CALLED)


def refuse_call(lowered: LoweredSite, host: HostFunction) -> None:
    """Raises what XLA is told if this call is of an interrupted run, see `refuse`."""
    try:
        refuse()
    except NotCalledError as error:
        raise report_failure(error, lowered, host.calls + 1) from None


def on_thread_of_xla() -> bool:
    """Whether this is inside of a host call that XLA makes behind Python's back."""
    return is_own(outermost(sys._getframe(1)))


def elements_left(guard: bytearray, elements: int) -> Iterator[Any]:
    """What comes after the last batch element: nothing, or NotCalledError if it was not the last.

    A generator that yields nothing: what is in it runs when the elements have come to their end.

    Args:
        guard: one byte for each batch element; an interrupt takes them away.
        elements: how many there are.
    """
    if elements and not guard:
        raise NotCalledError(NOT_CALLED)
    return
    yield


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
