"""Count something by site or by name, such as what happens to crossings in the queue."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from .._facts import LoweredSite, ObjectUse, QueueUse

Counts = tuple[int, ...]
_Key = TypeVar("_Key", bound=Hashable)


class KeyCounts(Generic[_Key]):
    """Several counts of each key; thread-safe."""

    def __init__(self) -> None:
        self._counts: dict[_Key, Counts] = {}
        self._lock = threading.RLock()  # a destructor may run a program meanwhile

    def add(self, key: _Key, more: Counts) -> None:
        """Add to the counts of a key, which begin with zeros."""
        with self._lock:
            before = self._counts.get(key)
            self._counts[key] = more if before is None else _added(before, more, 1)

    def counts(self) -> Mapping[_Key, Counts]:
        """Return the counts so far, to pass to `since` later."""
        with self._lock:
            return dict(self._counts)

    def since(self, before: Mapping[_Key, Counts]) -> dict[_Key, Counts]:
        """Return what was counted since `before`, of the keys for which that is not zero."""
        found = {
            key: _added(now, before[key], -1) if key in before else now
            for key, now in self.counts().items()
        }
        return {key: counts for key, counts in found.items() if any(counts)}


def _added(these: Counts, those: Counts, times: int) -> Counts:
    return tuple(a + times * b for a, b in zip(these, those, strict=True))


QUEUE_THREAD = "queued calls"  # the thread that makes the calls


class QueueUses:
    """The counts of each site; thread-safe."""

    def __init__(self) -> None:
        # waits, waited_ns, full, ended, skipped of `QueueUse`
        self._counts: KeyCounts[LoweredSite] = KeyCounts()
        self.counts = self._counts.counts

    def waits(self, lowered: LoweredSite) -> None:
        """Count a crossing for which the program waits, because the queue is full."""
        self._counts.add(lowered, (1, 0, 0, 0, 0))

    def waited(self, lowered: LoweredSite, ns: int) -> None:
        """Count `ns` more that the program has waited for it, which may go on."""
        self._counts.add(lowered, (0, ns, 0, 0, 0))

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


class ObjectUses:
    """The counts of each host object, by name; thread-safe."""

    def __init__(self) -> None:
        self._counts: KeyCounts[str] = KeyCounts()  # of `ObjectUse`, without `nbytes`
        self._nbytes: dict[str, int] = {}
        self.counts = self._counts.counts

    def add(self, name: str, more: Counts, nbytes: int) -> None:
        """Count uses of a host object, whose objects take `nbytes` now."""
        self._counts.add(name, more)
        self._nbytes[name] = nbytes

    def since(self, before: Mapping[str, Counts]) -> tuple[ObjectUse, ...]:
        """Return what was counted since `before`."""
        new = self._counts.since(before)
        return tuple(
            ObjectUse(name, *counts)._replace(nbytes=self._nbytes[name])
            for name, counts in new.items()
        )
