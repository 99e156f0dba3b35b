"""profile(): record a block, run JAX's profiler, and divide the wall time."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time

from ...recording import DEFAULT_CAPACITY, Profile, Recording, numbers_of
from ...stack.trace import Block
from ..observe import start_observing, stop_observing
from ..record import Record, RecordBlock, is_off
from ._build import Collected, build
from ._compilations import Compilations
from ._sampler import Sampler


class Profiled(Record):
    """The value of ``with profile() as p``; everything is available after the block."""

    _missing = "its block ended with an error or was interrupted; see that error."

    def __str__(self) -> str:
        """Return the report: where the time went, and the call sites."""
        return repr(self) if self._recording is None else str(self._recording)

    @property
    def profile(self) -> Profile:
        """Where the wall time of the block went.

        Raises:
            RuntimeError: the ``with`` block has not ended, or there is no profile, for a reason
                that the message says.
        """
        profile = self.recording.profile
        if profile is None:
            raise RuntimeError(f"there is no profile: {self._missing}")
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
    of the block's thread every 5 ms. After about 440,000 events of the profiler, less than a second
    of a program of tiny operations, the rest of the block is not profiled.

    Args:
        capacity: as for `record`.
        sample_values: as for `record`.

    Returns:
        A context manager that yields a `Profiled`: its `recording` is a `Recording`, whose
        `profile` is also the `profile` of the `Profiled`, once the block has ended.

    Raises:
        RuntimeError: JAX's profiler is running already, or this version of JAX is not supported.
        ValueError: as for `record`.
        jax.errors.JaxRuntimeError: as for `record`.

    >>> import jax, time, jupyter_jaxcb as jaxcb
    >>> def simulate(x):
    ...     time.sleep(0.2)
    ...     return x
    >>> step = jax.jit(jaxcb.pure(simulate, result=lambda x: x))
    >>> _ = step(1.0)
    >>> with jaxcb.profile() as p:
    ...     _ = step(2.0).block_until_ready()
    >>> p.profile.of_kind("host") > 0.19e9  # of the 0.2 s that it sleeps
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
        self._sampler: Sampler | None = None
        self._start_ns = self._end_ns = 0
        self._failed = False  # to build the profile; an error is raised once
        self._thread = threading.current_thread()

    def _recreate_cm(self) -> ProfileBlock:
        return ProfileBlock(*self._wanted)

    def begin(self) -> Profiled:
        if is_off():
            self._recorded.begin()
            self._yielded._missing = (
                "JUPYTER_JAXCB=off turned recording off. Start Python without it."
            )
            return self._yielded
        self._thread = threading.current_thread()
        self._sampler = Sampler()
        self._sampler.begin()
        start_observing(self)
        self._recorded.begin()
        self._compilations.watch()
        self._start_ns = time.perf_counter_ns()
        return self._yielded

    def leave(self, error: BaseException | None) -> None:
        # Observation ends later, in `end`: calls are still observed while the recording waits.
        self._recorded.leave(error)
        self._end_ns = time.perf_counter_ns()

    def end(self) -> None:
        self._end_ns = self._end_ns or time.perf_counter_ns()
        with contextlib.ExitStack() as steps:  # each is made, even if another one fails
            steps.callback(self._build)
            steps.callback(stop_observing, self)
            steps.callback(self._end_recording)
            steps.callback(self._compilations.unwatch)
            if self._sampler is not None:
                steps.callback(self._sampler.finish)

    def so_far(self) -> Recording:
        """Return the recording so far, without a profile."""
        return self._recorded.so_far()

    def _end_recording(self) -> None:
        self._recorded.end()
        self._yielded._recording = self._recorded.yielded.recording

    def _build(self) -> None:
        """Add the profile to the recording, if the block began and its events were read."""
        recording, sampler = self._yielded._recording, self._sampler
        if recording is None or sampler is None or not self._start_ns:
            return
        if sampler.is_forked:
            self._yielded._missing = "this process was forked in the block; its parent has it."
            return
        sampler.finish()
        if not sampler.tracing.runs or self._failed:
            return
        began = time.perf_counter_ns()
        try:
            found = build(self._collected(recording, sampler))
        except Exception:
            self._failed = True
            raise
        reading_ns = found.reading_ns + time.perf_counter_ns() - began
        found = found._replace(reading_ns=reading_ns)
        numbers = numbers_of(part.place for part in found.parts)
        self._yielded._recording = dataclasses.replace(
            recording,
            profile=found,
            numbers={**recording.numbers, **numbers},
            wall_ns=found.wall_ns,
            late_ns=0,
        )

    def _collected(self, recording: Recording, sampler: Sampler) -> Collected:
        tracing = sampler.tracing
        return Collected(
            start_ns=self._start_ns,
            end_ns=self._end_ns,
            thread=self._thread.name,
            ident=self._thread.ident or 0,
            recording=recording,
            runs=tracing.runs,
            event_ns=tracing.event_ns,
            reading_ns=tracing.reading_ns,
            gaps=tracing.gaps,
            samples=sampler.samples,
            stages=self._compilations.outermost(),
            programs=tuple(self._compilations.programs),
        )
