"""Sample what the block's thread does outside of JAX: which line, and whether it runs or waits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from types import FrameType

from ...recording import Frame
from ...stack.core import frames_of_threads, is_cell, is_user_code

INTERVAL_SECONDS = 0.005


class Sampler(threading.Thread):
    """Samples the thread that creates it, until `finish`.

    Attributes:
        times: when each sample was taken, on the recorder's clock; the first two are the edges of
            the first interval.
        cpu: the CPU time of the thread at each of these times, in nanoseconds; of the whole process
            where the system has no clock for threads.
        places: the innermost line of user code at each of these times; None: none, or an edge.
    """

    def __init__(self, also: Callable[[], None]) -> None:
        super().__init__(name="jaxcb profile", daemon=True)
        self.times: list[int] = []
        self.cpu: list[int] = []
        self.places: list[Frame | None] = []
        self._also = also  # called after each sample
        self._sampled = threading.get_ident()
        clock_of = getattr(time, "pthread_getcpuclockid", None)
        self._clock = None if clock_of is None else clock_of(self._sampled)
        self._finished = threading.Event()
        self._take(None)

    def run(self) -> None:
        while not self._finished.wait(INTERVAL_SECONDS):
            self._take(_user_frame(frames_of_threads().get(self._sampled)))
            self._also()

    def finish(self) -> None:
        """Take the last sample, in the sampled thread, and end."""
        self._finished.set()
        with contextlib.suppress(RuntimeError):  # an interrupt kept it from starting
            self.join()
        self._take(None)

    def _take(self, place: Frame | None) -> None:
        now, clock = time.perf_counter_ns(), self._clock
        try:
            cpu = time.process_time_ns() if clock is None else time.clock_gettime_ns(clock)
        except OSError:  # the thread has ended
            cpu = self.cpu[-1] if self.cpu else 0
        self.times.append(now)
        self.cpu.append(cpu)
        self.places.append(place)


def _user_frame(frame: FrameType | None) -> Frame | None:
    while frame is not None:
        code = frame.f_code
        if is_user_code(code.co_filename):
            return Frame(
                code.co_name, code.co_filename, frame.f_lineno, cell=is_cell(code.co_filename)
            )
        frame = frame.f_back
    return None
