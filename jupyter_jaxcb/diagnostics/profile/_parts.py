"""Build the parts of a profile: each with its intervals, from events and host calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from ... import jax_compat
from ...recording import Frame, PartKind, Recording, Site
from ...stack import elision
from ._compilations import Stage
from ._division import Intervals
from ._events import CALLBACK, Key
from ._queue import in_background, kind_of
from ._session import Gap


class Parts:
    """Numbers the parts of a profile, in the order in which they are met.

    Attributes:
        keys: kind, name and place of each part.
        lowered: for parts of callbacks, an index into `Recording.lowered`, otherwise -1.
        counts: how often each part happened.
    """

    def __init__(self, recording: Recording) -> None:
        self.keys: dict[tuple[PartKind, str, Frame | None], int] = {}
        self.lowered: list[int] = []
        self.counts: list[int] = []
        self._recording = recording
        self._sites: dict[Site, int] = {}  # the first index in `Recording.lowered`
        self._callbacks: dict[tuple[str, int], set[int]] = {}
        # The callbacks of the calls in crossings whose program does not name them, by part.
        self._inside: defaultdict[int, set[int]] = defaultdict(set)
        for number, fact in enumerate(recording.lowered):
            self._sites.setdefault(fact.site, number)
            if fact.program is not None:
                own = self._callbacks.setdefault((fact.program.name, fact.index), set())
                own.add(self._sites[fact.site])

    def number(self, kind: PartKind, name: str, place: Frame | None = None) -> int:
        """Return the number of a part, a new one if there is none."""
        found = self.keys.setdefault((kind, name, place), len(self.keys))
        if found == len(self.counts):
            self.counts.append(0)
            self.lowered.append(-1)
        return found

    def site_of(self, lowered: int) -> int:
        """Return the first index in `Recording.lowered` of a fact of the same site."""
        return self._sites[self._recording.lowered[lowered].site]

    @property
    def crossings(self) -> dict[tuple[int, Frame | None], int]:
        """The parts of crossings, by the first index of their site and their line."""
        return {
            (self.lowered[number], place): number
            for (kind, _, place), number in self.keys.items()
            if kind == PartKind.CROSSING and self.lowered[number] >= 0
        }

    def crossings_of(self, lowered: int) -> dict[Frame | None, int]:
        """Return the parts of crossings of the callback with this index, by their line."""
        wanted = self.site_of(lowered)
        return {place: part for (site, place), part in self.crossings.items() if site == wanted}

    def place_of(self, lowered: int) -> Frame | None:
        """Return the line of the callback with this index; None if it is not known."""
        site = self._recording.lowered[lowered].site
        return Frame("", site.file, site.line, site.column, site.cell) if site.line else None

    def of_callback(self, kind: PartKind, lowered: int, operation: Frame | None = None) -> int:
        """Return the number of a part of the callback with this index.

        Args:
            kind: of the part.
            lowered: index of the callback in `Recording.lowered`.
            operation: the line of its operation. In a program that was compiled before, only the
                operation tells where the callback is.
        """
        fact = self._recording.lowered[lowered]
        place = operation if fact.program is None else None
        number = self.number(kind, fact.site.function, place or self.place_of(lowered))
        self.lowered[number] = self.site_of(lowered)
        return number

    def of_events(self, keys: list[Key]) -> np.ndarray:
        """Return the part of each key of the profiler's events."""
        operations = _operations(keys)
        return np.array([self._of_event(key, operations.get(key)) for key in keys], np.int64)

    def _of_event(self, key: Key, operation: elision.Operation | None) -> int:
        if key.kind != "xla":
            return self.number(PartKind(key.kind), key.name)
        if operation is None:  # the program is gone
            name = elision.without_number(key.name)
            kind = PartKind.CROSSING if CALLBACK.match(name) else PartKind.XLA
            return self.number(kind, name)
        if operation.host_call is not None:
            callbacks = self._callbacks.get((key.module, operation.host_call), set())
            if len(callbacks) > 1:  # several programs have this name
                callbacks = {one for one in callbacks if self._is_at(one, operation.place)}
            if len(callbacks) == 1:
                return self.of_callback(PartKind.CROSSING, next(iter(callbacks)))
            return self.number(PartKind.CROSSING, operation.name, operation.place)
        return self.number(PartKind.XLA, operation.name, operation.place)

    def _is_at(self, lowered: int, place: Frame | None) -> bool:
        site = self._recording.lowered[lowered].site
        return place is not None and (site.file, site.line) == (place.file, place.line)

    def count(self, numbers: np.ndarray, by: int = 1) -> None:
        """Add `by` to the count of each of these parts."""
        for number, more in enumerate(np.bincount(numbers, minlength=len(self.counts))):
            self.counts[number] += by * int(more)

    def host_calls(self) -> tuple[Intervals, Intervals]:
        """Return the intervals of host calls, and of those in the background, in log order."""
        calls, facts = self._recording.calls, self._recording.lowered
        parts = [self.of_callback(kind_of(fact), number) for number, fact in enumerate(facts)]
        found = Intervals(
            calls["start_ns"], calls["end_ns"], np.array(parts, np.int64)[calls["lowered"]]
        )
        behind = in_background(self._recording)
        return found.chosen(~behind), found.chosen(behind)

    def name_crossings(self, events: Intervals, calls: Intervals) -> tuple[Intervals, Intervals]:
        """Return `events`, with callbacks for crossings whose program names none, and `calls`.

        They are found by the first host call in the crossing: JAX's own callbacks in programs that
        were compiled before, and programs with the same name. The call then has the crossing's
        line.
        """
        owners, callers = events.owners.copy(), calls.owners.copy()
        order = np.argsort(calls.starts)
        starts, callbacks = calls.starts[order], calls.owners[order]
        for (kind, _, place), number in list(self.keys.items()):
            own = np.flatnonzero(owners == number)
            if kind != PartKind.CROSSING or self.lowered[number] >= 0 or not len(own):
                continue
            first = np.searchsorted(starts, events.starts[own])
            called = first < np.searchsorted(starts, events.ends[own])
            inside = callbacks[first[called]]
            for callback in np.unique(inside):
                which, lowered = inside == callback, self.lowered[callback]
                self._inside[number].add(lowered)
                crossing = self.of_callback(PartKind.CROSSING, lowered, place)
                owners[own[called][which]] = crossing
                callers[order[first[called][which]]] = self.of_callback(
                    PartKind.HOST, lowered, place
                )
        return events._replace(owners=owners), calls._replace(owners=callers)

    def name_crossings_without_rows(self, events: Intervals) -> Intervals:
        """Return `events` with the callbacks of crossings for whose calls the log had no room.

        They are those of other crossings of the same operation. If the program is gone, the
        operation is not known, so the log must have had no room for calls of one callback only.
        """
        facts, owners = self._recording.lowered, events.owners.copy()
        full = {
            self.site_of(calls.lowered)
            for calls in self._recording.not_kept
            if kind_of(facts[calls.lowered]) == PartKind.HOST
        }
        for (kind, _, place), number in list(self.keys.items()):
            if kind == PartKind.CROSSING and self.lowered[number] < 0:
                found = self._inside[number] & full
                if len(found) == 1 and (place is not None or len(full) == 1):
                    crossing = self.of_callback(PartKind.CROSSING, *found, operation=place)
                    owners[owners == number] = crossing
        return events._replace(owners=owners)

    def compilations(self, stages: Iterable[Stage]) -> Intervals:
        """Return the intervals of compilations; a part counts its runs of XLA's compiler."""
        rows = []
        for stage in stages:
            number = self.number(PartKind.COMPILATION, stage.function)
            self.counts[number] += stage.kind == "compile"
            rows.append((stage.start_ns, stage.end_ns, number))
        return Intervals(*np.array(rows, np.int64).reshape(-1, 3).T)

    def gaps(self, gaps: Iterable[Gap], end: int) -> Intervals:
        """Return the times in which the profiler did not run."""
        rows = [
            (gap.start_ns, gap.end_ns or end, self.number(PartKind.UNKNOWN, gap.reason))
            for gap in gaps
        ]
        return Intervals(*np.array(rows, np.int64).reshape(-1, 3).T)


def _operations(keys: list[Key]) -> dict[Key, elision.Operation]:
    """Find the operations that the keys name in the programs that JAX holds."""
    wanted: dict[tuple[str, int | None], dict[str, Key]] = {}
    for key in keys:
        if key.kind == "xla":
            wanted.setdefault((key.module, key.program), {})[key.name] = key
    if not wanted:  # to ask JAX for its programs would initialize its backends
        return {}
    modules = {name for name, _ in wanted}
    operations: dict[Key, elision.Operation] = {}
    for module in jax_compat.modules_of_programs():
        if module.name not in modules:
            continue
        try:
            number = elision.program_number(module.as_serialized_hlo_module_proto())
            titles = wanted.get((module.name, number), {})
            of_module = elision.operations(module.to_string(), titles) if titles else {}
        except (ValueError, RuntimeError):  # a later XLA may store it otherwise, or not give it
            continue  # XLA's names remain
        operations |= {titles[title]: operation for title, operation in of_module.items()}
    return operations
