"""Find the line of a host call that an eager call of JAX's own callbacks makes.

JAX compiles one program for all equal eager calls, so the program does not determine the line. It
is the line of the eager call that this thread is making, or else of the last eager call that ran
the program.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ...stack import elision
from ...stack.call import Observed, ObservedFormat

MAX_LATEST = 1_000  # programs of eager calls whose line is remembered; the oldest is dropped first

Held = Observed | ObservedFormat


class _Here(threading.local):
    """The eager call that this thread is making, until its host function is called."""

    held: Held | None = None
    kept: Any = None  # the callback that its program keeps; None: no program


class EagerCalls:
    """The eager calls of all threads."""

    def __init__(self) -> None:
        self._here = _Here()
        self._lock = threading.Lock()
        # By id of the callback that a program keeps: that callback, and the last eager call that
        # ran the program, on any thread.
        self._latest: dict[int, tuple[Any, Held]] = {}

    @contextlib.contextmanager
    def made(self, held: Held, kept: Callable[[Any], Any] | None) -> Iterator[Any]:
        """Enclose an eager call and yield its callback; see `BuiltinWatcher.eager`."""
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
        """Whether `kept` belongs to the eager call that this thread is tracing or lowering."""
        return kept is not None and self._here.kept is kept

    def held_by(self, callback: Any) -> Held | None:
        """Return the callback of the eager call that made a host call; None if unknown.

        Args:
            callback: the callback that the host call was made with.
        """
        here, held = self._here, self._here.held
        if held is not None and (here.kept is None or here.kept is callback):
            here.held = here.kept = None  # calls inside the host function do not belong to it
            return held
        program, held = self._latest.get(id(callback), (None, None))
        return held if program is callback else None

    def forget(self) -> None:
        """Forget the lines."""
        with self._lock:
            self._latest.clear()

    def _remember(self, program: Any, held: Held) -> None:
        with self._lock:
            self._latest[id(program)] = program, held
            while len(self._latest) > MAX_LATEST:
                del self._latest[next(iter(self._latest))]


eager_calls = EagerCalls()
