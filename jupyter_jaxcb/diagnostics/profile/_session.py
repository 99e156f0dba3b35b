"""Run JAX's profiler for a block, and stop it before its events take too much memory."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import NamedTuple

import jax

from ... import jax_compat
from ...recording import Unknown
from ._events import CLOCK, MEASURED, NO_EVENTS, Events, read_events

try:
    import resource
except ImportError:  # Windows
    resource = None


class _Allocated(ctypes.Structure):
    """The ``struct mallinfo2`` of the GNU C library; `uordblks` is the eighth of its numbers."""

    _fields_ = [("numbers", ctypes.c_size_t * 10)]


def used_bytes() -> int | None:
    """Return the memory of small allocations, without large arrays; None if it is not known.

    Not the size of the process, which stays when memory is freed and used again. Only the GNU C
    library has this figure. Elsewhere, as on macOS, it is the most memory that the process has ever
    used: what grows into memory that was freed before is not seen. Windows has neither.
    """
    find = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
    if find is not None:
        find.restype = _Allocated
        return find().numbers[7]
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


_GROWTH_BYTES = 120_000_000  # of used memory, by about 440,000 events while they are collected
_LONGEST_NS = 10_000_000_000  # until they are read where the used memory is not known
_CHECK_NS = 50_000_000  # between two looks at the used memory, each of which takes 0.2 ms
_MANY_EVENTS = 200_000  # with fewer, something else has made the process grow
_MARKS = 5  # at once, to compare the clocks
_MEASURED, _BATCHES = 40, 5  # events by which the cost of one is measured
_RUNNING = (
    "cannot profile: JAX's profiler is running already. End the other profile() block, or call "
    "jax.profiler.stop_trace()."
)

_waiting: set[int] = set()  # the process, while a profiler waits for JAX's backends in it


class Gap(NamedTuple):
    """A time without the profiler, on the recorder's clock."""

    start_ns: int
    end_ns: int  # 0: the end of the block
    reason: Unknown


class Tracing:
    """JAX's profiler while a block runs; all methods are called by the thread of the sampler.

    To start the profiler initializes JAX's backends, and then the program cannot choose its devices
    any more. So the profiler waits until the program has initialized them.

    Its events take 270 bytes each while they are collected, and four times as much while they are
    read. When the used memory has grown by `_GROWTH_BYTES`, they are read, and the rest of the
    block is not profiled, unless there are few of them. Where the system does not tell how much
    memory is used, as on Windows, they are read every `_LONGEST_NS`.

    Attributes:
        runs: the events of each run of the profiler.
        gaps: the times without it.
        event_ns: the time that one event took.
        reading_ns: the time spent on reading.
    """

    def __init__(self) -> None:
        self.runs: list[Events] = []
        self.gaps: list[Gap] = []
        self.event_ns = self.reading_ns = 0
        self._session: jax_compat.ProfilerSession | None = None
        self._waits_ns = 0  # when JAX's backends were last seen to be missing; 0: it does not wait
        self._ran_ns = 0  # when the profiler was last seen to run
        self._began_ns = self._next_check = 0
        self._used: int | None = None

    def start(self) -> None:
        """Start the profiler, or let it wait for JAX's backends.

        Raises:
            RuntimeError: it is running already, or waits in another block.
        """
        if os.getpid() in _waiting:
            raise RuntimeError(_RUNNING)
        if jax_compat.backends_exist():
            self._begin()
        else:
            _waiting.add(os.getpid())
            self._waits_ns = time.perf_counter_ns()

    def check(self) -> None:
        """Start the profiler if it waits no longer; stop it if there are too many events."""
        now = time.perf_counter_ns()
        if self._waits_ns and jax_compat.backends_exist():
            self._begin_late(self._wait_no_longer(), Unknown.STARTING)
        elif self._waits_ns:
            self._waits_ns = now
        elif self._session is not None and self._session.is_running:
            self._ran_ns = now
            if now >= self._next_check:
                self._next_check = now + _CHECK_NS
                if self._has_grown(now):
                    self._restart(now)

    def stop(self) -> None:
        """Stop the profiler and read its events."""
        if self._waits_ns:
            since = self._wait_no_longer()
            if jax_compat.backends_exist():
                self.gaps.append(Gap(since, 0, Unknown.STARTING))
        elif self._session is not None:
            was_stopped = not self._session.is_running
            self._read()
            if was_stopped:
                since = max(self._ran_ns, self.runs[-1].last_ns)
                self.gaps.append(Gap(since, 0, Unknown.STOPPED))

    def _begin(self) -> None:
        __tracebackhide__ = True
        self._used, self._began_ns = used_bytes(), time.perf_counter_ns()
        try:
            self._session = jax_compat.ProfilerSession()
        except RuntimeError as error:
            raise RuntimeError(_RUNNING) from error
        if not self.event_ns:
            self._measure()
        _mark_often()

    def _begin_late(self, since: int, reason: Unknown) -> None:
        try:
            self._begin()
        except RuntimeError:
            self.gaps.append(Gap(since, 0, Unknown.OTHER))
        else:
            self.gaps.append(Gap(since, time.perf_counter_ns(), reason))

    def _wait_no_longer(self) -> int:
        self.runs.append(NO_EVENTS)
        since, self._waits_ns = self._waits_ns, 0
        _waiting.discard(os.getpid())
        return since

    def _has_grown(self, now: int) -> bool:
        used = used_bytes()
        if used is None or self._used is None:
            return now >= self._began_ns + _LONGEST_NS
        return used >= self._used + _GROWTH_BYTES

    def _restart(self, now: int) -> None:
        """Read the events, and start the profiler again if there are few."""
        self._read()
        if self.runs[-1].total < _MANY_EVENTS:
            self._begin_late(now, Unknown.READING)
        else:
            self.gaps.append(Gap(now, 0, Unknown.EVENTS))

    def _read(self) -> None:
        session, self._session = self._session, None
        assert session is not None
        _mark_often()
        began = time.perf_counter_ns()
        self.runs.append(read_events(session.stop()))
        self.reading_ns += time.perf_counter_ns() - began

    def _measure(self) -> None:
        took = []
        for _ in range(_BATCHES):
            began = time.perf_counter_ns()
            for _ in range(_MEASURED):
                with jax.profiler.TraceAnnotation(MEASURED):
                    pass
            took.append((time.perf_counter_ns() - began) // _MEASURED)
        self.event_ns = min(took)


def mark(whose: str = "") -> None:
    """Make an event whose name is its time on the recorder's clock; `whose` may be `OWN`."""
    with jax.profiler.TraceAnnotation(f"{CLOCK}{time.perf_counter_ns()}{whose}"):
        pass


def _mark_often() -> None:
    for _ in range(_MARKS):
        mark()
