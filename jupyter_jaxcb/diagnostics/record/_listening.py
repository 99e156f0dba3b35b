"""Activate a recorder, and the hooks in JAX that it needs, while anybody uses it.

An interrupt may hit between any two instructions here. So the users are a set, not a counter, and
`_reconcile` installs or removes the recorder and the hooks to match it, whatever was there before.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import jax

from ...recording import DEFAULT_CAPACITY, LoweredSite, Recorder, activate
from ...stack import elision
from ...stack.call import switches
from ...stack.trace import Block
from ._running import awaits_workers, notice_jax_inside, running_calls

Wanted = tuple[int, bool]  # capacity, and whether sample values are kept


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
_last: weakref.ref[Recorder] | None = None  # the recorder that was active before, now stopped
_last_wanted: Wanted | None = None  # how it, or the active recorder, was made


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
    _reconcile((capacity, sample_values))
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


def _reconcile(wanted: Wanted = (DEFAULT_CAPACITY, True)) -> None:
    """Install or remove recorder and hooks to match the users; a new recorder is as `wanted`."""
    global _reconciling, _again
    with _lock:
        _again = True
        if _reconciling:
            return
        try:
            _reconciling = True
            while _again:
                _again = False
                _reconcile_recorder(wanted)
        finally:
            _reconciling = False


def _reconcile_recorder(wanted: Wanted) -> None:
    global _recorder, _last, _last_wanted
    if not _users:
        activate(None)
        if _recorder is not None:
            _last = weakref.ref(_recorder)
        _recorder = None
        elision.unwatch()
        return
    if _recorder is None:
        last = None if _last is None else _last()
        if last is None or wanted != _last_wanted or not _still_records(last, wanted[0]):
            last = None
        recorder = last or Recorder(
            capacity=wanted[0], sample_values=wanted[1], observation=switches
        )
        elision.watch(recorder, notice_jax_inside, again=last is not None)
        _recorder, _last_wanted = recorder, wanted
    _recorder.around = annotated if _annotating else None
    activate(None if _silent else _recorder)


def _still_records(recorder: Recorder, capacity: int) -> bool:
    """Return whether calls run that will report to a recorder that was stopped.

    A call reports to the recorder that was active when it began. Where calls run from one block
    into the next one, both blocks use the same recorder, unless its log is half full. Calls that no
    program waits for stay in the block in which the program ran.
    """
    awaited = any(call.lowered.is_awaited for call in running_calls(recorder))
    return (awaited or awaits_workers(recorder)) and 2 * recorder.room() > capacity
