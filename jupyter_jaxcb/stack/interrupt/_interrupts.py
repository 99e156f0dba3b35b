"""Ctrl-C and the stop button: cancel the host calls of the programs in flight.

A host call does not know which run it belongs to. But the asynchronous programs of a thread run in
the order of their dispatch, so the runs to cancel are those in flight when the interrupt arrives:
until they are done, host calls on XLA's threads are refused. Nothing needs to be undone afterwards,
and a run that is dispatched later is never refused.
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

from ... import jax_compat
from ...recording import LoweredSite
from ..call import HostFunction
from ..errors import NotCalledError
from ..trace import any_lowered, frames_of_threads
from ._ending import end_running, is_own, outermost
from ._failure import caller_of, report_failure
from ._in_flight import InFlight

_POLL_SECONDS = 0.005
_MOMENT_SECONDS = 0.5
_LONG_SECONDS = 2.0
NOT_CALLED = "not called, because its run was interrupted"


class _Refusal:
    """Host calls on XLA's threads are refused until what is in `until` is done."""

    def __init__(self) -> None:
        self.until: InFlight | Stuck | None = None


refusal = _Refusal()


class Stuck:
    """A main thread that waits in C++, where Python handles no signals, until it moves on."""

    def __init__(self) -> None:
        self._frame, self._at = _main_place()

    def is_done(self, patience: bool = False) -> bool:
        """Return whether it has moved on, or that is unknown; `patience` is only for `InFlight`."""
        frame, at = _main_place()
        return frame is None or frame is not self._frame or at != self._at

    def wait(self, seconds: float) -> bool:
        """Return whether it moves on within `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.is_done() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return self.is_done()


def interrupt() -> None:
    """Refuse every host call that the programs in flight have not made yet.

    Running host calls get an EndedError: Python code ends, C code runs until it returns. The
    ordering tokens of this thread are dropped; otherwise every later ordered call would fail with
    the same error. Safe to call from a signal handler.
    """
    if not any_lowered():
        return
    in_flight = InFlight()
    jax_compat.forget_tokens()
    if in_flight.is_done():
        return
    in_flight.forget_finished()
    refusal.until = in_flight
    end_running()


def interrupt_main(stuck: Stuck | None = None) -> None:
    """As `interrupt`, but called from another thread while the main thread is stuck in C++.

    The main thread runs a program whose host calls XLA makes on other threads, and never gets to
    its signal handler. The error of a refused call releases it. Does nothing if the main thread
    moves on.

    Args:
        stuck: where the main thread was when the signal arrived, a moment ago; None: the signal
            arrived now, so this waits for a moment.
    """
    seconds = _MOMENT_SECONDS if stuck is None else 0.0
    stuck = stuck or Stuck()
    if refusal.until is None and not stuck.wait(seconds):
        refusal.until = stuck
        end_running()


def _main_place() -> tuple[FrameType | None, int]:
    frame = frames_of_threads().get(threading.main_thread().ident or 0)
    return frame, -1 if frame is None else frame.f_lasti


def release() -> None:
    """Stop refusing host calls if the interrupted programs are done.

    With several devices, programs do not wait for each other, so nothing is refused any longer.
    """
    if refusal.until is not None and (refusal.until.is_done() or jax.local_device_count() > 1):
        refusal.until = None


def is_interrupted() -> bool:
    """Return whether host calls may have to be refused."""
    return refusal.until is not None


def refuse() -> None:
    """Raise NotCalledError if this host call belongs to an interrupted run.

    A crossing calls this first if there is a `refusal`.
    """
    pending = refusal.until
    if pending is None or pending.is_done(patience=True):
        refusal.until = None
    elif caller_of(sys._getframe(1)) is None:
        raise NotCalledError(NOT_CALLED)


def refuse_call(lowered: LoweredSite, host: HostFunction) -> None:
    """Raise the error for XLA if this call belongs to an interrupted run, see `refuse`."""
    try:
        refuse()
    except NotCalledError as error:
        raise report_failure(error, lowered, host.calls + 1) from None


def on_thread_of_xla() -> bool:
    """Return whether this runs inside a host call on one of XLA's threads."""
    return is_own(outermost(sys._getframe(1)))


def elements_left(guard: bytearray, elements: int) -> Iterator[Any]:
    """Raise NotCalledError at the end of the loop if an interrupt cut it short.

    A generator that yields nothing: its body runs when the batch elements are exhausted.

    Args:
        guard: one byte for each batch element; an interrupt clears it.
        elements: the number of batch elements.
    """
    if elements and not guard:
        raise NotCalledError(NOT_CALLED)
    return
    yield


def interrupt_at_exit() -> None:
    """Cancel the remaining host calls if a script ends with KeyboardInterrupt.

    Waits for the running call, because XLA's threads must not outlive Python: until it ends in a
    script, for a moment in an interactive session, whose last exception says nothing about why it
    ends.
    """
    interactive = hasattr(sys, "ps1") or sys.flags.interactive
    if not interactive and issubclass(
        getattr(sys, "last_type", None) or Exception, KeyboardInterrupt
    ):
        interrupt()
    if refusal.until is not None:
        refusal.until.wait(_LONG_SECONDS if interactive else math.inf)
    jax_compat.leave_cpp(_LONG_SECONDS)


atexit.register(interrupt_at_exit)
