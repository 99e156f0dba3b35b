"""Count what happens to crossings in the queue, besides that their calls are made."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from .._facts import LoweredSite, QueueUse

QUEUE_THREAD = "queued calls"  # the thread that makes the calls
_Counts = tuple[int, ...]  # waits, waited_ns, full, ended, skipped of `QueueUse`
_NONE: _Counts = (0, 0, 0, 0, 0)


class QueueUses:
    """The counts of each site; thread-safe."""

    def __init__(self) -> None:
        self._counts: dict[LoweredSite, _Counts] = {}
        self._lock = threading.Lock()

    def waited(self, lowered: LoweredSite, ns: int) -> None:
        """Count a crossing for which the program waited `ns`, because the queue was full."""
        self._add(lowered, (1, ns, 0, 0, 0))

    def full(self, lowered: LoweredSite, calls: int) -> None:
        """Count calls that were dropped because the queue was full."""
        self._add(lowered, (0, 0, calls, 0, 0))

    def ended(self, lowered: LoweredSite, calls: int) -> None:
        """Count calls that were dropped by an interrupt or by `drop_queued`."""
        self._add(lowered, (0, 0, 0, calls, 0))

    def skipped(self, lowered: LoweredSite, calls: int) -> None:
        """Count batch elements after a failed one, which were not called."""
        self._add(lowered, (0, 0, 0, 0, calls))

    def counts(self) -> Mapping[LoweredSite, _Counts]:
        """Return the counts so far, to pass to `since` later."""
        with self._lock:
            return dict(self._counts)

    def since(
        self, before: Mapping[LoweredSite, _Counts], left: Mapping[LoweredSite, int]
    ) -> dict[LoweredSite, QueueUse]:
        """Return what was counted since `before`, and the calls that are `left` in the queue."""
        found = {}
        for lowered, now in {**dict.fromkeys(left, _NONE), **self.counts()}.items():
            earlier = before.get(lowered, _NONE)
            *others, skipped = (a - b for a, b in zip(now, earlier, strict=True))
            use = QueueUse(0, *others, left=left.get(lowered, 0), skipped=skipped)
            if any(use):
                found[lowered] = use
        return found

    def _add(self, lowered: LoweredSite, more: _Counts) -> None:
        with self._lock:
            before = self._counts.get(lowered, _NONE)
            self._counts[lowered] = tuple(a + b for a, b in zip(before, more, strict=True))
