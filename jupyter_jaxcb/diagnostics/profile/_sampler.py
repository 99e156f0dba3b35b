"""The thread that runs the profiler and samples at which line the block's thread is."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from types import FrameType

import numpy as np

from ...stack.trace import frames_of_threads
from ._events import OWN
from ._samples import Samples, Where, place_of
from ._session import Tracing, mark

INTERVAL_SECONDS = 0.005


class Sampler(threading.Thread):
    """Runs JAX's profiler, and samples which line the block's thread is at, and its CPU time.

    The profiler is started, stopped and read in this thread, because Ctrl-C does not interrupt it.

    Attributes:
        tracing: the profiler.
    """

    def __init__(self) -> None:
        super().__init__(name="jaxcb profile", daemon=True)
        self.tracing = Tracing()
        self._process, self._sampled = os.getpid(), threading.get_ident()
        clock_of = getattr(time, "pthread_getcpuclockid", None)
        # Of the whole process where the system has no clock for threads.
        self._clock = None if clock_of is None else clock_of(self._sampled)
        self._taken: list[tuple[int, int, Where]] = []
        self._began, self._finished = threading.Event(), threading.Event()
        # Ctrl-C interrupts the wait for it, but the `join` of Python 3.13 only when the thread has
        # ended, and after an interrupted `join` Python 3.11 takes the thread for ended.
        self._ended = threading.Event()
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Start the profiler and take the first sample.

        Raises:
            RuntimeError: JAX's profiler is running already.
        """
        __tracebackhide__ = True
        self.start()
        self._began.wait()
        self._raise()
        mark(OWN)
        self._take(None)

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked since, so that the thread is not in it."""
        return os.getpid() != self._process

    def finish(self) -> None:
        """Take the last sample, stop the profiler and read its events; again if interrupted."""
        if self.is_forked:
            return
        if not self._finished.is_set():
            if threading.get_ident() == self._sampled:
                mark(OWN)
            self._take(None)
            self._finished.set()
        if self.ident is not None:  # else an interrupt kept it from starting
            self._ended.wait()
            with contextlib.suppress(RuntimeError):  # it was interrupted while it started
                self.join()
        self._raise()

    def run(self) -> None:
        try:
            if self._finished.is_set():  # an interrupt came before
                return
            self.tracing.start()
            self._began.set()
            while not self._finished.wait(INTERVAL_SECONDS):
                self._take(frames_of_threads().get(self._sampled))
                self.tracing.check()
            self.tracing.stop()
        except BaseException as error:  # raised in the block's thread
            self._error = error
        finally:
            self._began.set()
            self._ended.set()

    @property
    def samples(self) -> Samples:
        """All samples, in their order; without a place: an edge, or no line of user code."""
        times, cpu, places = zip(*sorted(self._taken, key=lambda taken: taken[0]), strict=True)
        return Samples(np.array(times), np.array(cpu), places)

    def _raise(self) -> None:
        __tracebackhide__ = True
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _take(self, frame: FrameType | None) -> None:
        now, clock = time.perf_counter_ns(), self._clock
        try:
            cpu = time.process_time_ns() if clock is None else time.clock_gettime_ns(clock)
        except OSError:  # the thread has ended
            cpu = self._taken[-1][1] if self._taken else 0
        self._taken.append((now, cpu, place_of(frame)))
