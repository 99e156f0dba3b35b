"""Ctrl-C and the stop button: refuse and end the host calls of the programs in flight.

A host call does not know which run it belongs to. But the asynchronous programs of a thread run in
the order of their dispatch, so the runs to cancel are those in flight when the interrupt arrives:
until they are done, crossings on XLA's threads refuse to begin. They read a flag for this, the
`refusal`. Nothing needs to be undone afterwards, and a run that is dispatched later is never
refused. A host function that is running Python gets an EndedError, one that runs C goes on until it
returns.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import jax

from ... import jax_compat
from ...recording import LoweredSite
from ..call import HostFunction
from ..errors import EndedError, NotCalledError
from ..trace import (
    CROSSINGS,
    JAX_FOLDER,
    WAITING,
    any_lowered,
    frames_of_threads,
    is_recording,
    stack_of,
    without_collecting,
)
from ._failure import is_own, raise_in_thread, report_failure
from ._in_flight import InFlight

_POLL_SECONDS = 0.005
_LONG_SECONDS = 2.0
NOT_CALLED = "not called, because its run was interrupted"
_ending = threading.RLock()  # reentrant, because a signal may arrive while it is held


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


def _main_place() -> tuple[FrameType | None, int]:
    frame = frames_of_threads().get(threading.main_thread().ident or 0)
    return frame, -1 if frame is None else frame.f_lasti


class _Refusal:
    """Host calls on XLA's threads are refused until what is in `until` is done."""

    def __init__(self) -> None:
        self.until: InFlight | Stuck | None = None


refusal = _Refusal()


def interrupt() -> None:
    """Refuse every host call that the programs in flight have not made yet, and end those running.

    The ordering tokens of this thread are dropped; otherwise every later ordered call would fail
    with the same error. Safe to call from a signal handler.
    """
    if not any_lowered():
        return
    in_flight = InFlight()
    jax_compat.forget_tokens()
    if not in_flight.is_done():
        in_flight.forget_finished()
        refusal.until = in_flight
        end_calls(_begins_on_thread_of_xla)


def interrupt_main(stuck: Stuck) -> None:
    """As `interrupt`, but called from another thread while the main thread is stuck in C++.

    The main thread runs a program whose host calls XLA makes on other threads, and never gets to
    its signal handler. The error of a refused call releases it. Does nothing if the main thread
    has moved on.
    """
    if refusal.until is None and not stuck.is_done():
        refusal.until = stuck
        end_calls(_begins_on_thread_of_xla)


def end_calls(makes_calls: Callable[[FrameType], bool]) -> None:
    """End host calls: loops over batch elements after this one, Python functions with EndedError.

    Args:
        makes_calls: whether a frame on a thread's stack makes the host calls that are to end.
    """
    with _ending:
        without_collecting(lambda: _end_calls(makes_calls))
    # While a thread in C has an exception to raise, CPython 3.11 loops forever where a traced
    # function begins, unless some thread raises such an exception.
    _thread.start_new_thread(_raise_here, ())


def _end_calls(makes_calls: Callable[[FrameType], bool]) -> None:
    for thread, frame in sys._current_frames().items():
        caller = next(filter(makes_calls, stack_of(frame)), None)
        if caller is None:
            continue
        for below in stack_of(frame):
            guard = below.f_locals.get("guard") if below.f_code in CROSSINGS else None
            if isinstance(guard, bytearray):
                guard.clear()
        if _is_in_host_function(frame):
            raise_in_thread(thread, EndedError)
            now = sys._current_frames().get(thread)
            if caller not in stack_of(now) or not _is_in_host_function(now):
                raise_in_thread(thread, None)  # it has left the call meanwhile


def _is_in_host_function(frame: FrameType | None) -> bool:
    """Return whether an exception at `frame` would be one of the host function's.

    A crossing expects none where it waits, records a call, or handles an `error`.
    """
    return not is_own(frame) and not any(
        below.f_code in WAITING
        or (is_own(below) and (is_recording(below) or "error" in below.f_locals))
        for below in stack_of(frame)
    )


def _raise_here() -> None:
    with contextlib.suppress(EndedError):
        raise_in_thread(_thread.get_ident(), EndedError)
        while True:
            pass


def _begins_on_thread_of_xla(frame: FrameType) -> bool:
    """Return whether a thread of XLA begins with this frame. It runs nothing but host calls."""
    return frame.f_back is None and (is_own(frame) or _is_of_jax(frame))


def _is_of_jax(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(JAX_FOLDER)


def is_call_of_jax(frame: FrameType) -> bool:
    """Return whether a thread of XLA makes a host call of JAX's own callbacks at `frame`."""
    *_, outermost = stack_of(frame)
    return _is_of_jax(outermost)


def on_thread_of_xla() -> bool:
    """Return whether this runs inside a host call on one of XLA's threads."""
    *_, outermost = stack_of(sys._getframe(1))
    return is_own(outermost)


def refuse_call(lowered: LoweredSite, host: HostFunction) -> None:
    """Raise the error for XLA if this host call belongs to an interrupted run.

    A crossing calls this first if there is a `refusal`.
    """
    with contextlib.suppress(EndedError), _ending:
        pass  # an exception that arrives here was meant for the last call of this thread
    pending = refusal.until
    if pending is None or pending.is_done(patience=True):
        refusal.until = None
    elif on_thread_of_xla():
        raise report_failure(NotCalledError(NOT_CALLED), lowered, host.calls + 1)


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


def release() -> None:
    """Stop refusing host calls if the interrupted programs are done.

    With several devices, programs do not wait for each other, so nothing is refused any longer.
    """
    if refusal.until is not None and (refusal.until.is_done() or jax.local_device_count() > 1):
        refusal.until = None


def interrupt_at_exit() -> None:
    """Cancel the remaining host calls if a script ends with KeyboardInterrupt.

    Waits for the running call, because XLA's threads must not outlive Python: until it ends in a
    script, for a moment in an interactive session, whose last exception says nothing about why it
    ends.
    """
    interactive = hasattr(sys, "ps1") or sys.flags.interactive
    last = getattr(sys, "last_type", None) or Exception
    if not interactive and issubclass(last, KeyboardInterrupt):
        interrupt()
    if refusal.until is not None:
        refusal.until.wait(_LONG_SECONDS if interactive else math.inf)
    jax_compat.leave_cpp(_LONG_SECONDS)


atexit.register(interrupt_at_exit)
