"""Count what happens to crossings in the queue, besides that their calls are made."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from .._facts import LoweredSite, QueueUse

QUEUE_THREAD = "queued calls"  # the thread that makes the calls
_Counts = tuple[int, int, int, int]  # waits, waited_ns, full and ended of `QueueUse`
_NONE: _Counts = (0, 0, 0, 0)


class QueueUses:
    """The counts of each site; thread-safe."""

    def __init__(self) -> None:
        self._counts: dict[LoweredSite, _Counts] = {}
        self._lock = threading.Lock()

    def waited(self, lowered: LoweredSite, ns: int) -> None:
        """Count a crossing for which the program waited `ns`, because the queue was full."""
        self._add(lowered, (1, ns, 0, 0))

    def dropped(self, lowered: LoweredSite, *, full: bool) -> None:
        """Count the calls of one crossing, dropped because the queue was `full` or to end it."""
        calls = lowered.elements or 1
        self._add(lowered, (0, 0, calls, 0) if full else (0, 0, 0, calls))

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
            new = [a - b for a, b in zip(now, before.get(lowered, _NONE), strict=True)]
            use = QueueUse(0, *new, left=left.get(lowered, 0))
            if any(use):
                found[lowered] = use
        return found

    def _add(self, lowered: LoweredSite, more: _Counts) -> None:
        with self._lock:
            before = self._counts.get(lowered, _NONE)
            waits, waited, full, ended = (a + b for a, b in zip(before, more, strict=True))
            self._counts[lowered] = waits, waited, full, ended
