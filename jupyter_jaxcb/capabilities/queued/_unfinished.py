"""What a cell has dispatched: programs, and the calls that these have queued."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...stack.interrupt import InFlight
from ._queue import queue


class Unfinished(InFlight):
    """As `InFlight`, but done only when the calls that the programs queued are made, too."""

    def __init__(self) -> None:
        super().__init__()
        self._last: int | None = None  # number of the last crossing queued; None: not known yet
        self._end: float = math.inf  # of the last one that was queued before `end`

    def is_done(self, patience: bool = False) -> bool:
        """Return whether all programs are done, and the calls that they queued."""
        if self._last is None:
            if not super().is_done(patience):
                return False
            self._last = queue.added
        return queue.is_done(self._last)

    def end(self) -> None:
        """End the cell: crossings that are queued from now on belong to a later one."""
        self._end = queue.added

    def includes(self, number: int) -> bool:
        """Return whether the crossing with this number was queued before `end`."""
        return number <= self._end

    def wait(self, seconds: float, look: Callable[[], None] = lambda: None) -> bool:
        """See `InFlight.wait`."""
        with queue.waited_for():
            return super().wait(seconds, look)
