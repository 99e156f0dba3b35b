"""Count something by site."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from .._facts import LoweredSite

Counts = tuple[int, ...]


class SiteCounts:
    """Several counts of each site; thread-safe."""

    def __init__(self) -> None:
        self._counts: dict[LoweredSite, Counts] = {}
        self._lock = threading.RLock()  # a destructor may run a program meanwhile

    def add(self, lowered: LoweredSite, more: Counts) -> None:
        """Add to the counts of a site, which begin with zeros."""
        with self._lock:
            before = self._counts.get(lowered)
            self._counts[lowered] = more if before is None else _added(before, more, 1)

    def counts(self) -> Mapping[LoweredSite, Counts]:
        """Return the counts so far, to pass to `since` later."""
        with self._lock:
            return dict(self._counts)

    def since(self, before: Mapping[LoweredSite, Counts]) -> dict[LoweredSite, Counts]:
        """Return what was counted since `before`, of the sites for which that is not zero."""
        found = {
            lowered: _added(now, before[lowered], -1) if lowered in before else now
            for lowered, now in self.counts().items()
        }
        return {lowered: counts for lowered, counts in found.items() if any(counts)}


def _added(these: Counts, those: Counts, times: int) -> Counts:
    return tuple(a + times * b for a, b in zip(these, those, strict=True))
