"""profile(): record a block, run JAX's profiler, and divide the wall time."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time

import numpy as np

from ...recording import DEFAULT_CAPACITY, Profile
from ...stack.core import Block
from ..observe import start_observing, stop_observing
from ..record import Record, RecordBlock, is_off
from ._build import Collected, build
from ._compilations import Compilations
from ._lanes import lane_name
from ._outside import Samples
from ._sampler import Sampler
from ._session import Tracing


class Profiled(Record):
    """The value of ``with profile() as p``; everything is available after the block."""

    def __str__(self) -> str:
        """Return the report: where the time went, and the call sites."""
        return repr(self) if self._recording is None else str(self._recording)

    @property
    def profile(self) -> Profile:
        """Where the wall time of the block went.

        Raises:
            RuntimeError: the ``with`` block has not ended, or ``JUPYTER_JAXCB=off``.
        """
        profile = self.recording.profile
        if profile is None:
            raise RuntimeError(
                "there is no profile, because JUPYTER_JAXCB=off turned recording off. Start Python "
                "without it."
            )
        return profile


def profile(
    capacity: int = DEFAULT_CAPACITY, *, sample_values: bool = True
) -> contextlib.AbstractContextManager[Profiled]:
    """Record a ``with`` block as `observe_jax` does, and find out where its time went.

    Each instant of the block belongs to the first of these that happens then: a host function runs;
    XLA is in a callback (a crossing); data is copied to or from a device; an operation of a program
    runs; JAX or XLA compiles; JAX dispatches a program; Python runs; a queued host function runs.
    Otherwise the block is idle. So the parts add up to the wall time. It ends when the host calls
    of its programs are done; programs without callbacks count only if the block waits for their
    results, as by `jax.block_until_ready`.

    The times come from the recording, from JAX's profiler, from `jax.monitoring`, and from samples
    of the block's thread every 5 ms. After about 600,000 events of the profiler, a second
    of a program of tiny operations, the rest of the block is not profiled.

    Args:
        capacity: as for `record`.
        sample_values: as for `record`.

    Returns:
        A context manager that yields a `Profiled`: its `recording` is a `Recording`, whose
        `profile` is also the `profile` of the `Profiled`, once the block has ended.

    Raises:
        RuntimeError: JAX's profiler is running already, or this version of JAX is not supported.

    >>> import jax, time, jupyter_jaxcb as jaxcb
    >>> def simulate(x):
    ...     time.sleep(0.2)
    ...     return x
    >>> step = jax.jit(jaxcb.pure(simulate, result=lambda x: x))
    >>> _ = step(1.0)
    >>> with jaxcb.profile() as p:
    ...     _ = step(2.0).block_until_ready()
    >>> p.profile.of_kind("host") > 0.9 * p.profile.wall_ns
    True
    """
    return ProfileBlock(capacity, sample_values)


class ProfileBlock(Block):
    """The context manager that `profile` returns."""

    def __init__(self, capacity: int, sample_values: bool) -> None:
        self._wanted = capacity, sample_values
        self._recorded = RecordBlock(capacity, sample_values)
        self._yielded = Profiled(self)
        self._compilations = Compilations()
        self._watching = contextlib.ExitStack()
        self._tracing: Tracing | None = None
        self._sampler: Sampler | None = None
        self._start_ns = self._end_ns = 0
        self._thread = threading.current_thread()

    def _recreate_cm(self) -> ProfileBlock:
        return ProfileBlock(*self._wanted)

    def begin(self) -> Profiled:
        if is_off():
            self._recorded.begin()
            return self._yielded
        self._thread = threading.current_thread()
        self._tracing = Tracing()
        start_observing(self)
        self._recorded.begin()
        self._watching.enter_context(self._compilations.watching())
        self._sampler = Sampler(also=self._tracing.check)
        self._sampler.start()
        self._start_ns = time.perf_counter_ns()
        return self._yielded

    def leave(self, error: BaseException | None) -> None:
        # Observation ends later, in `end`: calls are still observed while the recording waits.
        self._recorded.leave(error)
        self._end_ns = time.perf_counter_ns()

    def end(self) -> None:
        self._end_ns = self._end_ns or time.perf_counter_ns()
        if self._sampler is not None:
            self._sampler.finish()
        if self._tracing is not None:
            self._tracing.stop()
        self._watching.close()
        self._recorded.end()
        stop_observing(self)
        recording = self._recorded.yielded.recording
        self._yielded._recording = recording
        if self._start_ns:
            began = time.perf_counter_ns()
            found = build(self._collected())
            reading_ns = found.reading_ns + time.perf_counter_ns() - began
            found = found._replace(reading_ns=reading_ns)
            self._yielded._recording = dataclasses.replace(recording, profile=found)

    def _collected(self) -> Collected:
        tracing, sampler = self._tracing, self._sampler
        assert tracing is not None and sampler is not None and self._yielded._recording is not None
        return Collected(
            start_ns=self._start_ns,
            end_ns=self._end_ns,
            thread=lane_name(self._thread.name),
            ident=self._thread.ident or 0,
            recording=self._yielded._recording,
            events=tracing.parts,
            event_ns=tracing.event_ns,
            reading_ns=tracing.reading_ns,
            gaps=tracing.gaps,
            samples=Samples(np.array(sampler.times), np.array(sampler.cpu), sampler.places),
            stages=self._compilations.outermost(),
            programs=tuple(self._compilations.programs),
        )
