"""Activate a recorder, and the hooks in JAX that it needs, while anybody uses it.

An interrupt may hit between any two instructions here. So the users are a set, not a counter, and
`_reconcile` installs or removes the recorder and the hooks to match it, whatever was there before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import jax

from ...recording import DEFAULT_CAPACITY, LoweredSite, Recorder, activate
from ...stack import elision
from ...stack.call import switches
from ...stack.trace import Block
from ._running import notice_jax_inside


def annotated(lowered: LoweredSite, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function` so that each call is a trace annotation with the host function's name."""
    site = lowered.site
    name = f"host call {site.function}"

    def call(*operands: Any) -> Any:
        __tracebackhide__ = True
        with jax.profiler.TraceAnnotation(name, flavor=site.flavor, where=site.where):
            return function(*operands)

    return call


# Reentrant: garbage collection can run anywhere and may end a generator inside a block.
_lock = threading.RLock()
_reconciling = False
_again = False  # users have changed during `_reconcile`, on the same thread
_users: set[object] = set()  # blocks of record(), in any thread, and notebook sessions
_silent: set[object] = set()  # blocks in which nothing is recorded
_annotating: set[object] = set()  # blocks of record(annotate=True)
_recorder: Recorder | None = None  # of the users


def start(
    user: object,
    capacity: int = DEFAULT_CAPACITY,
    sample_values: bool = True,
    annotate: bool = False,
) -> Recorder:
    """Return the active recorder, activating a new one if needed, until all users call `stop`."""
    _users.add(user)
    if annotate:
        _annotating.add(user)
    _reconcile(
        functools.partial(
            Recorder, capacity=capacity, sample_values=sample_values, observation=switches
        )
    )
    assert _recorder is not None
    return _recorder


def stop(user: object) -> None:
    """Remove `user`, if present; without users there is no active recorder."""
    _users.discard(user)
    _annotating.discard(user)
    _reconcile()


class Listening(Block):
    """A block with an active recorder."""

    def begin(self) -> Recorder:
        return start(self)

    def end(self) -> None:
        stop(self)


class Silence(Block):
    """A block in which nothing is recorded."""

    def begin(self) -> None:
        _silent.add(self)
        _reconcile()

    def end(self) -> None:
        _silent.discard(self)
        _reconcile()


def _reconcile(make: Callable[[], Recorder] = Recorder) -> None:
    """Install or remove recorder and hooks to match the users; `make` creates the recorder."""
    global _reconciling, _again
    with _lock:
        _again = True
        if _reconciling:
            return
        try:
            _reconciling = True
            while _again:
                _again = False
                _reconcile_recorder(make)
        finally:
            _reconciling = False


def _reconcile_recorder(make: Callable[[], Recorder]) -> None:
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
