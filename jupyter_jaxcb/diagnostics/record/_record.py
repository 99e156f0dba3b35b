"""record(): activate a recorder, run, drain, freeze."""

from __future__ import annotations

import contextlib
import numbers
import os
import threading
import time
import warnings
from typing import Any

import jax

from ... import jax_compat
from ...recording import DEFAULT_CAPACITY, Mark, Recorder, Recording
from ...stack.interrupt import interrupt, on_thread_of_xla
from ...stack.trace import Block, any_lowered
from ._listening import Silence, start, stop
from ._running import still_running

VARIABLE = "JUPYTER_JAXCB"


def is_off() -> bool:
    """Whether the environment turns recording off."""
    return os.environ.get(VARIABLE, "").strip().lower() == "off"


BUDGET_SECONDS = 5.0  # the end of a block waits this long for programs without effects
_POLL_SECONDS = 0.001


class Record:
    """The value of ``with record() as r``; `recording` is available after the block."""

    def __init__(self, block: Block) -> None:
        self._recording: Recording | None = None
        self._block = block

    def __repr__(self) -> str:
        return "<recording in progress>" if self._recording is None else repr(self._recording)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a notebook in which the extension is not loaded shows of the recording."""
        shown = self._recording
        return ({"text/plain": repr(self)}, {}) if shown is None else shown._repr_mimebundle_()

    def _display_(self) -> Any:
        """Return what marimo shows: the widget of the recording."""
        return repr(self) if self._recording is None else self._recording._display_()

    @property
    def recording(self) -> Recording:
        """The recording of the block.

        Raises:
            RuntimeError: the ``with`` block has not ended; read it after the block.
        """
        if self._recording is None and self._block.is_left:  # an interrupt hit while it ended
            self._block.finish()
        if self._recording is None:
            raise RuntimeError(
                "the recording is not available before its `with` block has ended. Read it after "
                "the block."
            )
        return self._recording


def recording_so_far(record: Record) -> Recording:
    """Return what a block that has not ended has recorded."""
    block: Any = record._block
    return block.so_far()


def record(
    capacity: int = DEFAULT_CAPACITY, *, sample_values: bool = True, annotate: bool = False
) -> contextlib.AbstractContextManager[Record]:
    """Record the host calls and elided callbacks of the programs that run in a ``with`` block.

    At its end the block waits for the host calls of programs that were dispatched inside: without
    a limit for queued calls and for programs with effects, and at most 5 s for programs with only
    pure callbacks. If one of these still runs then, a warning says that its later host calls are
    not recorded; call `jax.block_until_ready` on its result in the block.

    Blocks may be nested and entered in several threads: each records everything, in any thread,
    until it ends. With ``JUPYTER_JAXCB=off`` in the environment the recording is empty.

    Args:
        capacity: number of host calls to log (48 bytes each, up to three times that while the
            block ends); later ones are only counted.
            Overlapping blocks share the log of the first block.
        sample_values: keep values of the first calls of each callback, and of the first failed
            ones. A notebook saves them only with ``--values``. Overlapping blocks use the setting
            of the first.
        annotate: annotate each host call for JAX's profiler (`jax.profiler.TraceAnnotation`), so
            that XProf and TensorBoard show it beside XLA's events. This also affects overlapping
            blocks.

    Returns:
        A context manager that yields a `Record`; its `recording` is the `Recording` once the block
        has ended.

    Raises:
        ValueError: `capacity` is not a whole number of at least 0.
        jax.errors.JaxRuntimeError: at the end of the block, if a host function failed in a program
            with effects that nobody waited for. `jupyter_jaxcb.host_error` returns the original
            exception.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with jaxcb.record() as r:
    ...     y = jax.vmap(double)(np.arange(3))
    >>> len(r.recording)
    3
    """
    return RecordBlock(capacity, sample_values, annotate)


class RecordBlock(Block):
    """The context manager that `record` returns."""

    def __init__(self, capacity: int, sample_values: bool, annotate: bool = False) -> None:
        is_whole = isinstance(capacity, numbers.Integral) and not isinstance(capacity, bool)
        if not is_whole or capacity < 0:
            raise ValueError(
                f"capacity is {capacity!r}, not a number of host calls. Try capacity=1_000_000."
            )
        self._wanted = capacity, sample_values, annotate
        self.yielded = Record(self)
        self._recorder: Recorder | None = None
        self._mark: Mark | None = None
        self._left_ns = 0  # when the code in the block ended

    def _recreate_cm(self) -> RecordBlock:
        return RecordBlock(*self._wanted)

    def begin(self) -> Record:
        if not is_off():
            self._recorder = start(self, *self._wanted)
            self._mark = self._recorder.mark()
        return self.yielded

    def leave(self, error: BaseException | None) -> None:
        if self._recorder is not None:
            self._left_ns = self._recorder.clock()
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
        unfinished = jax_compat.unfinished_programs()
        stop(self)  # first: no call begins after the search for those that run
        self.yielded._recording = self._so_far(unfinished)

    def so_far(self) -> Recording:
        """Return the recording so far, also on another thread; the block goes on."""
        return self._so_far(set())

    def _so_far(self, unfinished: set[Any]) -> Recording:
        if self._recorder is None or self._mark is None:
            return Recording(environment=environment())
        left = self._left_ns
        code = (left - self._mark.at_ns, left) if left else None
        return self._recorder.freeze(
            self._mark,
            environment=environment(),
            running=still_running(self._recorder),
            code=code,
            unfinished=unfinished | jax_compat.unfinished_programs(),
        )


def _interrupt() -> None:
    """Do what Ctrl-C does, unless the interrupt was raised in another thread."""
    if threading.current_thread() is threading.main_thread():
        interrupt()


def _warn_of(left: int) -> None:
    runs = "a program is" if left == 1 else f"{left:,} programs are"
    warnings.warn(
        f"{runs} still running {BUDGET_SECONDS:g} s after the end of a record() block; its later "
        "host calls are not recorded. Call jax.block_until_ready(result) inside the block.",
        stacklevel=4,
    )


class Unrecorded(Silence):
    """A block in which nothing is recorded, including programs that it dispatches."""

    def leave(self, error: BaseException | None) -> None:
        if error is None:
            drain()


def drain(budget_seconds: float = BUDGET_SECONDS) -> int:
    """Wait until dispatched programs have made their host calls.

    Programs with effects that this thread dispatched are waited for without a limit, and so are
    queued calls. Runs of programs with only pure callbacks are waited for at most `budget_seconds`,
    using their results.
    Return at once if no program with callbacks exists, or in a host call on a thread of XLA, which
    would wait for itself.

    Returns:
        The number of runs that are still unfinished.

    Raises:
        jax.errors.JaxRuntimeError: a host function failed in a program that was not waited for.
    """
    if not any_lowered() or on_thread_of_xla():
        return 0
    deadline = time.monotonic() + budget_seconds
    try:
        jax.effects_barrier()
    except BaseException:
        jax_compat.forget_tokens()  # else every later barrier raises the same error again
        raise
    runs = jax_compat.unfinished_runs()
    while runs and time.monotonic() <= deadline:
        time.sleep(_POLL_SECONDS)
        runs = [array for array in runs if not jax_compat.is_done(array)]
    return len(runs)


def environment() -> dict[str, str]:
    """Return the versions and backend that statuses depend on."""
    known = {"jax": jax.__version__, "backend": jax_compat.backend_name()}
    if not jax_compat.is_on("statuses"):
        known["statuses"] = "unknown, except of callbacks that ran"
    return known
