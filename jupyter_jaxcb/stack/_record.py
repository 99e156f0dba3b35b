"""record(): activate a recorder, run, drain, freeze."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import jax

from ..recording import DEFAULT_CAPACITY, Recorder, Recording, activate
from . import _jax, _programs
from ._annotate import annotated
from ._interrupts import interrupt
from ._observed import switches
from ._off import is_off
from ._reentry import notice_jax_inside
from ._running import still_running

_POLL_SECONDS = 0.001
_lock = threading.Lock()
_users = 0  # of the recorder: blocks of record(), in any thread, and notebook sessions
_recorder: Recorder | None = None  # that is active, unless nothing is to be recorded now
_annotated = 0  # blocks of record(annotate=True)
_unrecorded = 0  # blocks of unrecorded()


class Record:
    """What `record` yields: its `recording` is there once the ``with`` block has ended."""

    def __init__(self) -> None:
        self._recording: Recording | None = None

    def __repr__(self) -> str:
        return "<recording, not over yet>" if self._recording is None else repr(self._recording)

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
def record(
    capacity: int = DEFAULT_CAPACITY, *, previews: bool = True, annotate: bool = False
) -> Iterator[Record]:
    """Records every host call and every elided callback of what runs inside.

    May be nested, and entered in several threads: each block gets what happened, in any thread,
    while it lasted.

    Args:
        capacity: host calls kept (48 bytes each); later ones are only counted. Blocks that overlap
            share the log of the first.
        previews: keep values of the first calls of each callback, and of failing ones. They are
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
    yielded = Record()
    if is_off():
        try:
            yield yielded
        finally:
            yielded._recording = Recording(environment=environment())
        return
    recorder = start(capacity, previews)
    mark = recorder.mark()
    try:
        with _annotating(recorder) if annotate else contextlib.nullcontext():
            yield yielded
            drain()
    except KeyboardInterrupt:
        interrupt()
        raise
    finally:
        running = still_running(recorder)
        stop()
        yielded._recording = recorder.freeze(mark, environment=environment(), running=running)


def start(capacity: int = DEFAULT_CAPACITY, previews: bool = True) -> Recorder:
    """The active recorder, or a new one that is active from now on; each `start` needs a `stop`."""
    global _users, _recorder
    with _lock:
        recorder = _recorder
        if recorder is None:
            recorder = _recorder = Recorder(
                capacity=capacity, previews=previews, observation=switches
            )
            if not _unrecorded:
                activate(recorder)
            _programs.watch(recorder, notice_jax_inside)
        _users += 1
        return recorder


def stop() -> None:
    """Ends what `start` began; the last one empties the recorder's slot."""
    global _users, _recorder
    with _lock:
        _users -= 1
        if _users == 0:
            _recorder = None
            activate(None)
            _programs.unwatch()


@contextlib.contextmanager
def _annotating(recorder: Recorder) -> Iterator[None]:
    global _annotated
    with _lock:
        _annotated += 1
        recorder.around = annotated
    try:
        yield
    finally:
        with _lock:
            _annotated -= 1
            if not _annotated:
                recorder.around = None


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Records nothing of this process meanwhile, whoever listens."""
    global _unrecorded
    with _lock:
        _unrecorded += 1
        activate(None)
    try:
        yield
        drain()  # what it dispatched is not to be heard later
    finally:
        with _lock:
            _unrecorded -= 1
            if not _unrecorded:
                activate(_recorder)


def drain(budget_seconds: float = 5.0) -> None:
    """Waits until dispatched programs have made their host calls.

    Returns at once while no program of ours exists. Programs with effects that this thread
    dispatched are waited for whatever they take. A program with pure callbacks only
    is known by its results: arrays that are alive and not ready are waited for, but no longer
    than `budget_seconds`.

    Raises:
        jax.errors.JaxRuntimeError: a host function failed in a program that nobody waited for.
    """
    if not _programs.any_lowered():
        return
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
    return {"jax": jax.__version__, "backend": _jax.backend_name()}
