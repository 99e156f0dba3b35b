"""Detect deadlocked or unresponsive workers."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterable
from types import FrameType
from typing import TYPE_CHECKING

from jupyter_jaxcb_worker import run_elements, running

from ...stack.interrupt import end_call_in
from ...stack.trace import JAX_FOLDER, WAITING, frames_of_threads, stack_of
from ._engine import Engine

if TYPE_CHECKING:
    from ._flight import SubmittedChunk

GRACE_SECONDS = 5.0  # a worker gets this long after the timeout to report it itself


def is_deadlocked(engine: Engine) -> bool:
    """Return whether all threads of `engine` are inside JAX or wait for batch elements themselves.

    Then none of them may ever take the next chunk: a host function has called something that needs
    the same executor.
    """
    busy = [thread for thread, other in list(running.items()) if _same_executor(engine, other)]
    if len(busy) < engine.workers:
        return False
    frames = frames_of_threads()
    return all(_is_waiting(frames.get(thread)) for thread in busy)


def _same_executor(engine: Engine, other: Engine | None) -> bool:
    return other is not None and other.executor is engine.executor


def _is_waiting(frame: FrameType | None) -> bool:
    for one in stack_of(frame):
        if one.f_code is run_elements.__code__:
            return False
        if one.f_code in WAITING or one.f_code.co_filename.startswith(JAX_FOLDER):
            return True
    return False


def end_stuck_worker(flight: SubmittedChunk, timeout: float, engine: Engine) -> None:
    """Kill our worker process if its batch element timed out and it did not report that itself.

    Such a worker holds the GIL, so its own timeout thread cannot run.
    """
    mark = flight.mark
    if mark is None or engine.make is None or flight.killed or mark.pid == os.getpid():
        return
    if (time.perf_counter_ns() - mark.since_ns) / 1e9 > timeout + GRACE_SECONDS:
        _kill(flight, mark.pid)


def end_workers(flights: Iterable[SubmittedChunk], engine: Engine) -> None:
    """End the batch elements that workers still run, after an interrupt.

    Threads of this process get an EndedError in their host function, and worker processes of our
    own pool are killed. Other executors offer no way to end what runs; one of MPI would end with
    its first worker.
    """
    left = [f for f in flights if f.future is not None and not f.future.done()]
    for flight in left:
        mark = flight.mark
        is_ours = engine.make is not None and engine.near
        if mark is not None and is_ours and mark.pid != os.getpid():
            engine.workers_killed()
            _kill(flight, mark.pid)
    numbers = {flight.chunk.number for flight in left}
    for thread, innermost in frames_of_threads().items():
        crossings = (one for one in stack_of(innermost) if one.f_code is run_elements.__code__)
        frame = next(crossings, None)
        if frame is not None and frame.f_locals["chunk"].number in numbers:
            end_call_in(thread, {run_elements.__code__})


def _kill(flight: SubmittedChunk, pid: int) -> None:
    flight.killed = True
    with contextlib.suppress(OSError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def runs_on_this_thread(engine: Engine) -> bool:
    """Return whether this thread runs a batch element for `engine`.

    If it does, it should run its own chunks: the workers it would wait for may wait for it.
    """
    return _same_executor(engine, running.get(threading.get_ident()))
