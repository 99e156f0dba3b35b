"""Count something by site, such as what happens to crossings in the queue."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from .._facts import LoweredSite, QueueUse

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


QUEUE_THREAD = "queued calls"  # the thread that makes the calls


class QueueUses:
    """The counts of each site; thread-safe."""

    def __init__(self) -> None:
        self._counts = SiteCounts()  # waits, waited_ns, full, ended, skipped of `QueueUse`
        self.counts = self._counts.counts

    def waited(self, lowered: LoweredSite, ns: int) -> None:
        """Count a crossing for which the program waited `ns`, because the queue was full."""
        self._counts.add(lowered, (1, ns, 0, 0, 0))

    def full(self, lowered: LoweredSite, calls: int) -> None:
        """Count calls that were dropped because the queue was full."""
        self._counts.add(lowered, (0, 0, calls, 0, 0))

    def ended(self, lowered: LoweredSite, calls: int) -> None:
        """Count calls that were dropped by an interrupt or by `drop_queued`."""
        self._counts.add(lowered, (0, 0, 0, calls, 0))

    def skipped(self, lowered: LoweredSite, calls: int) -> None:
        """Count batch elements after a failed one, which were not called."""
        self._counts.add(lowered, (0, 0, 0, 0, calls))

    def since(
        self, before: Mapping[LoweredSite, Counts], left: Mapping[LoweredSite, int]
    ) -> dict[LoweredSite, QueueUse]:
        """Return what was counted since `before`, and the calls that are `left` in the queue."""
        new = self._counts.since(before)
        found = {}
        for lowered in {**left, **new}:
            *others, skipped = new.get(lowered, (0, 0, 0, 0, 0))
            use = QueueUse(0, *others, left=left.get(lowered, 0), skipped=skipped)
            if any(use):
                found[lowered] = use
        return found
