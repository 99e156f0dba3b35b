"""record(): activate a recorder, run, drain, freeze."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import jax

from ..recording import DEFAULT_CAPACITY, Recorder, Recording, activate, active
from . import _jax, _programs

_POLL_SECONDS = 0.001


class Record:
    """What `record` yields: its `recording` is there once the ``with`` block has ended."""

    def __init__(self) -> None:
        self._recording: Recording | None = None

    @property
    def recording(self) -> Recording:
        """What was recorded.

        Raises:
            RuntimeError: inside the ``with`` block: it is not over yet.
        """
        if self._recording is None:
            raise RuntimeError(
                "the recording is made when the `with jaxcb.record()` block ends; read it after."
            )
        return self._recording


@contextlib.contextmanager
def record(capacity: int = DEFAULT_CAPACITY) -> Iterator[Record]:
    """Records every host call and every elided callback of what runs inside.

    May be nested: each block gets what happened in it.

    Args:
        capacity: host calls kept (40 bytes each); later ones are only counted.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
    >>> with jaxcb.record() as r:
    ...     y = jax.vmap(double)(np.arange(3))
    >>> len(r.recording)
    3
    """
    yielded = Record()
    recorder, owner = start(capacity)
    mark = recorder.mark()
    try:
        yield yielded
        drain()
    finally:
        if owner:
            stop()
        yielded._recording = recorder.freeze(mark, environment=environment())


def start(capacity: int = DEFAULT_CAPACITY) -> tuple[Recorder, bool]:
    """The active recorder, or a new one that is active now (then True: the caller stops it)."""
    recorder = active()
    if recorder is not None:
        return recorder, False
    recorder = Recorder(capacity=capacity)
    activate(recorder)
    _programs.watch()
    return recorder, True


def stop() -> None:
    """Empties the recorder's slot."""
    _programs.unwatch()
    activate(None)


def drain(budget_seconds: float = 5.0) -> None:
    """Waits until dispatched programs have made their host calls.

    Programs with effects are waited for whatever they take. A program with pure callbacks only
    is known by its results: arrays that are alive and not ready are waited for, but no longer
    than `budget_seconds`.

    Raises:
        jax.errors.JaxRuntimeError: a host function failed in a program that nobody waited for.
    """
    deadline = time.monotonic() + budget_seconds
    try:
        jax.effects_barrier()
    except BaseException:
        _jax.forget_tokens()  # or every later barrier raises this again
        raise
    for array in jax.live_arrays():
        while not array.is_deleted() and not array.is_ready():
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_SECONDS)


def environment() -> dict[str, str]:
    """What the fates depend on."""
    return {"jax": jax.__version__, "backend": jax.default_backend()}
