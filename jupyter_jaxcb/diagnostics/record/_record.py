"""record(): activate a recorder, run, drain, freeze."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import warnings

import jax

from ...recording import DEFAULT_CAPACITY, Mark, Recorder, Recording
from ...stack import jax_compat
from ...stack.core import Block, any_lowered
from ...stack.dispatch import interrupt, on_thread_of_xla
from ._listening import Silence, start, stop
from ._off import is_off
from ._running import still_running

BUDGET_SECONDS = 5.0  # that the end of a block waits for programs without effects
_POLL_SECONDS = 0.001


class Record:
    """What `record` yields: its `recording` is there once the ``with`` block has ended."""

    def __init__(self, block: Block) -> None:
        self._recording: Recording | None = None
        self._block = block

    def __repr__(self) -> str:
        return "<recording, not over yet>" if self._recording is None else repr(self._recording)

    @property
    def recording(self) -> Recording:
        """What was recorded.

        Raises:
            RuntimeError: inside the ``with`` block: it is not over yet.
        """
        if self._recording is None and self._block.is_left:  # an interrupt has interrupted its end
            self._block.finish()
        if self._recording is None:
            raise RuntimeError(
                "the recording is made when the `with jaxcb.record()` block ends; read it after."
            )
        return self._recording


def record(
    capacity: int = DEFAULT_CAPACITY, *, sample_values: bool = True, annotate: bool = False
) -> contextlib.AbstractContextManager[Record]:
    """Records every host call and every elided callback of what runs inside.

    May be nested, and entered in several threads: each block gets what happened, in any thread,
    while it lasted.

    Args:
        capacity: host calls kept (48 bytes each); later ones are only counted. Blocks that overlap
            share the log of the first.
        sample_values: keep values of the first calls of each callback, and of failing ones. They are
            not in what a notebook saves unless ``--values`` says so. Blocks that overlap do as the
            first.
        annotate: tell JAX's profiler of each host call (`jax.profiler.TraceAnnotation`), so that
            XProf and TensorBoard show it beside what XLA does. It is on for whoever records
            meanwhile.

    With ``JUPYTER_JAXCB=off`` in the environment nothing is recorded: the recording is empty.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with jaxcb.record() as r:
    ...     y = jax.vmap(double)(np.arange(3))
    >>> len(r.recording)
    3
    """
    return RecordBlock(capacity, sample_values, annotate)


class RecordBlock(Block):
    """What `record` returns."""

    def __init__(self, capacity: int, sample_values: bool, annotate: bool = False) -> None:
        self._wanted = capacity, sample_values, annotate
        self._yielded = Record(self)
        self._recorder: Recorder | None = None
        self._mark: Mark | None = None

    def _recreate_cm(self) -> RecordBlock:
        return RecordBlock(*self._wanted)

    def begin(self) -> Record:
        if not is_off():
            self._recorder = start(self, *self._wanted)
            self._mark = self._recorder.mark()
        return self._yielded

    def leave(self, error: BaseException | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            _interrupt()
        elif error is None and self._recorder is not None:
            try:
                left = drain(BUDGET_SECONDS)
            except KeyboardInterrupt:
                _interrupt()
                raise
            if left:
                _warn_of(left)

    def end(self) -> None:
        recorder, mark, recording = self._recorder, self._mark, Recording
        if recorder is not None and mark is not None:
            running = still_running(recorder)
            recording = functools.partial(recorder.freeze, mark, running=running)
        stop(self)
        self._yielded._recording = recording(environment=environment())


def _interrupt() -> None:
    """What Ctrl-C does; one that somebody has raised in another thread is that thread's own."""
    if threading.current_thread() is threading.main_thread():
        interrupt()


def _warn_of(left: int) -> None:
    runs = "a program is" if left == 1 else f"{left:,} programs are"
    warnings.warn(
        f"{runs} still running {BUDGET_SECONDS:g} s after the end of a record() block; host calls "
        "made from now on are not in its recording. Wait for the results inside the block: "
        "jax.block_until_ready(result).",
        stacklevel=4,
    )


class Unrecorded(Silence):
    """A block of which nothing is recorded, nor of what it has dispatched."""

    def leave(self, error: BaseException | None) -> None:
        if error is None:
            drain()


def drain(budget_seconds: float = BUDGET_SECONDS) -> int:
    """Waits until dispatched programs have made their host calls.

    Returns at once while no program of ours exists. Programs with effects that this thread
    dispatched are waited for whatever they take. A program with pure callbacks only
    is known by its results, whether anybody keeps them or not: those of runs that were seen are
    waited for, but no longer than `budget_seconds`. Nothing is waited for in a host call that XLA
    makes behind Python's back, which would wait for itself.

    Raises:
        jax.errors.JaxRuntimeError: a host function failed in a program that nobody waited for.
    """
    if not any_lowered() or on_thread_of_xla():
        return 0
    deadline = time.monotonic() + budget_seconds
    try:
        jax.effects_barrier()
    except BaseException:
        jax_compat.forget_tokens()  # or every later barrier raises this again
        raise
    runs = jax_compat.unfinished_runs()
    while runs and time.monotonic() <= deadline:
        time.sleep(_POLL_SECONDS)
        runs = [array for array in runs if not jax_compat.is_done(array)]
    return len(runs)


def environment() -> dict[str, str]:
    """What the statuses depend on."""
    return {"jax": jax.__version__, "backend": jax_compat.backend_name()}
