"""What is changed in JAX and Python, and is put back: whole again wherever an interrupt comes."""

from __future__ import annotations

from collections.abc import Callable


class Changes:
    """Changes that are taken back together, the last one first; not locked."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def make(self, change: Callable[[], object], undo: Callable[[], None]) -> None:
        """Makes a change.

        Args:
            change: what makes it.
            undo: what takes it back; does no harm if it was not made, or is taken back twice.
        """
        self._undo.append(undo)
        change()

    def revert(self) -> None:
        """Takes back all that was made; after an interrupt of this, the rest of it."""
        while self._undo:
            self._undo[-1]()
            self._undo.pop()
