"""Eager calls of JAX's own callbacks: of which line a host call is.

JAX compiles one program for all equal eager calls, so the line is not the program's: it is that of
the call which this thread makes now, or the last one that the program was made to run for.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ...stack import elision
from ...stack.core import Observed, ObservedFormat

MAX_LATEST = 1_000  # programs of eager calls whose line is remembered; the oldest go first

Held = Observed | ObservedFormat


class _Here(threading.local):
    """The eager call that this thread makes now, until its host function is called."""

    held: Held | None = None
    kept: Any = None  # by its program; None: there is none


class EagerCalls:
    """The eager calls that are made, in every thread."""

    def __init__(self) -> None:
        self._here = _Here()
        self._lock = threading.Lock()
        # What programs keep, by identity, and what the call held that ran each of them last; they
        # may run on any thread.
        self._latest: dict[int, tuple[Any, Held]] = {}

    @contextlib.contextmanager
    def made(self, held: Held, kept: Callable[[Any], Any] | None) -> Iterator[Any]:
        """Around an eager call; what it is to hold. See `jax_compat.OwnCallbacks.eager`."""
        elision.executed(held.bind)
        here, program = self._here, None
        if kept is not None:
            program = kept(held.original)
            self._remember(program, held)
        before = here.held, here.kept
        here.held, here.kept = held, program
        try:
            yield held.original
        finally:
            here.held, here.kept = before

    def is_under_way(self, kept: Any) -> bool:
        """Whether it is the program of this thread's eager call that is traced, or lowered."""
        return kept is not None and self._here.kept is kept

    def held_by(self, callback: Any) -> Held | None:
        """What the eager call held that a host call is of; None where it is of no known one.

        Args:
            callback: what the host call came with.
        """
        here, held = self._here, self._here.held
        if held is not None and (here.kept is None or here.kept is callback):
            here.held = here.kept = None  # what the host function does is no part of it
            return held
        program, held = self._latest.get(id(callback), (None, None))
        return held if program is callback else None

    def forget(self) -> None:
        """Forgets the lines."""
        with self._lock:
            self._latest.clear()

    def _remember(self, program: Any, held: Held) -> None:
        with self._lock:
            self._latest[id(program)] = program, held
            while len(self._latest) > MAX_LATEST:
                del self._latest[next(iter(self._latest))]


eager_calls = EagerCalls()
