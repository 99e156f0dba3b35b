"""Patches of JAX and Python that can be undone, even if an interrupt cuts either step short."""

from __future__ import annotations

from collections.abc import Callable


class Changes:
    """Changes that are reverted together, the last one first. Not thread-safe."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def make(self, change: Callable[[], object], undo: Callable[[], None]) -> None:
        """Make a change.

        Args:
            change: makes it.
            undo: reverts it; must be harmless if the change was not made or is already reverted.
        """
        self._undo.append(undo)
        change()

    def revert(self) -> None:
        """Revert all changes; if an interrupt cut this short, a second call reverts the rest."""
        while self._undo:
            self._undo[-1]()
            self._undo.pop()
