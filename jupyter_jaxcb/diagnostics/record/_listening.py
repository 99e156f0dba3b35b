"""Who listens: the active recorder, and what is changed in JAX while there is one.

An interrupt may come between any two instructions of this. So nothing is counted: who listens is a
set, and the rest is made to fit it, from whatever was there before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from ...recording import DEFAULT_CAPACITY, Recorder, activate
from ...stack import elision
from ...stack.core import Block, switches
from ._jax_running import notice_jax_inside
from ._profiler import annotated

# Reentrant: garbage is collected anywhere, and a generator in a block may be among it.
_lock = threading.RLock()
_fitting = False
_again = False  # somebody came or went meanwhile, on the same thread
_users: set[object] = set()  # blocks of record(), in any thread, and notebook sessions
_silent: set[object] = set()  # blocks of unrecorded()
_annotating: set[object] = set()  # blocks of record(annotate=True)
_recorder: Recorder | None = None  # of the users


def start(
    user: object,
    capacity: int = DEFAULT_CAPACITY,
    sample_values: bool = True,
    annotate: bool = False,
) -> Recorder:
    """The active recorder, or a new one that is active from now on, until `stop` of all users."""
    _users.add(user)
    if annotate:
        _annotating.add(user)
    _fit(
        functools.partial(
            Recorder, capacity=capacity, sample_values=sample_values, observation=switches
        )
    )
    assert _recorder is not None
    return _recorder


def stop(user: object) -> None:
    """`user` listens no more, if he did; without any the recorder's slot is empty."""
    _users.discard(user)
    _annotating.discard(user)
    _fit()


class Listening(Block):
    """A block with a recorder."""

    def begin(self) -> Recorder:
        return start(self)

    def end(self) -> None:
        stop(self)


class Silence(Block):
    """A block of which nothing is recorded, whoever listens."""

    def begin(self) -> None:
        _silent.add(self)
        _fit()

    def end(self) -> None:
        _silent.discard(self)
        _fit()


def _fit(make: Callable[[], Recorder] = Recorder) -> None:
    """Makes everything fit who listens; `make` makes the recorder if there is none."""
    global _fitting, _again
    with _lock:
        _again = True
        if _fitting:
            return
        try:
            _fitting = True
            while _again:
                _again = False
                _fit_recorder(make)
        finally:
            _fitting = False


def _fit_recorder(make: Callable[[], Recorder]) -> None:
    global _recorder
    if not _users:
        activate(None)
        _recorder = None
        elision.unwatch()
        return
    if _recorder is None:
        recorder = make()
        elision.watch(recorder, notice_jax_inside)
        _recorder = recorder
    _recorder.around = annotated if _annotating else None
    activate(None if _silent else _recorder)
