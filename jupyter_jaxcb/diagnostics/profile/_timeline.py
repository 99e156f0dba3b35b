"""One table of spans from all sources of a profile, with the parts and lanes they belong to.

The profiler knows operations and threads, the recording knows callbacks and names of threads, and
neither numbers threads or calls as the other does. What joins them is time: the crossing of a host
call lies within one event of its operation. That tells the call's lane, and the callback of an
operation whose program does not name it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from ... import jax_compat
from ...recording import (
    BACKGROUND,
    PYTHON_OF_JAX,
    Frame,
    PartKind,
    Recording,
    Site,
    kind_of,
)
from ...stack import elision
from ._compilations import Stage
from ._events import CALLBACK, Events, Key
from ._samples import Where
from ._session import Gap
from ._spans import NONE, spans

_THREADS = {"tf_": "XLA", "python": "Python"}  # how the profiler names threads begins so
_NAMELESS = "Dummy-"  # begins the names that Python gives to threads which others have started


class Timeline:
    """What happened, in which part and in which lane; the first lane is that of the block's thread.

    Attributes:
        parts: the number of each part, by its kind, name and line.
        sites: for parts of callbacks, the first index in `Recording.lowered` of their call site,
            otherwise `NONE`.
        counts: how often each part happened.
        lanes: the names of threads and devices.
        table: all spans.
    """

    def __init__(self, recording: Recording, thread: str, block: tuple[int, int]) -> None:
        self.parts: dict[tuple[PartKind, str, Frame | None], int] = {}
        self.sites: list[int] = []
        self.counts: list[int] = []
        self.lanes = [lane_name(thread)]
        self.table = spans([], [], [], [])
        self._recording, self._block = recording, block
        first: dict[Site, int] = {}
        numbers = [first.setdefault(fact.site, n) for n, fact in enumerate(recording.lowered)]
        self.site_of = np.array(numbers, np.int64)  # by the index in `Recording.lowered`
        # Call sites whose programs name them; of others, only the operation tells the line.
        self._in_programs = {
            n for n, fact in zip(numbers, recording.lowered, strict=True) if fact.program
        }
        self._unnamed: list[int] = []  # lanes of Python whose names the profiler does not give

    def part(self, kind: PartKind, name: str, place: Frame | None = None, site: int = NONE) -> int:
        """Return the number of a part, a new one if there is none."""
        number = self.parts.setdefault((kind, name, place), len(self.parts))
        if number == len(self.sites):
            self.sites.append(NONE)
            self.counts.append(0)
        self.sites[number] = site if site != NONE else self.sites[number]
        return number

    def part_of_callback(self, kind: PartKind, site: int, operation: Frame | None = None) -> int:
        """Return the number of a part of a callback; `operation` is the line of its operation."""
        own = self._recording.lowered[site].site
        place = None if site in self._in_programs else operation
        if place is None and own.line:
            place = Frame("", own.file, own.line, own.column, own.cell)
        return self.part(kind, own.function, place, site)

    def part_of_rest(self, kind: PartKind, where: Where) -> int:
        """Return the number of a part of Python, JAX's own or not, or of idle time, at a line."""
        place, in_jax = where
        if in_jax and kind == PartKind.PYTHON:
            return self.part(PartKind.DISPATCH, PYTHON_OF_JAX, place)
        name = place.function if place and not place.function.startswith("<") else ""
        return self.part(kind, name, place)

    def add(self, table: np.ndarray, counted: np.ndarray | bool = True) -> None:
        """Add spans, and count those at least partly in the block if they are `counted`."""
        start, end = self._block
        touch = (table["start"] < end) & ((table["end"] > start) | (table["start"] >= start))
        found = np.bincount(table["part"][touch & counted], minlength=len(self.counts)).tolist()
        self.counts = [count + more for count, more in zip(self.counts, found, strict=True)]
        self.table = np.concatenate([self.table, table])

    def add_stages(self, stages: Sequence[Stage], thread: int) -> None:
        """Add compilations, those of the thread with this number to its lane."""
        columns = [
            (one.start_ns, one.end_ns, self.part(PartKind.COMPILATION, one.function),
             0 if one.thread == thread else NONE)
            for one in stages
        ]  # fmt: skip
        table = spans(*np.array(columns, np.int64).reshape(-1, 4).T)
        self.add(table, np.array([one.is_last for one in stages], bool))

    def add_gaps(self, gaps: Sequence[Gap]) -> None:
        """Add the times in which the profiler did not run."""
        for gap in gaps:
            part = self.part(PartKind.UNKNOWN, gap.reason)
            row = spans(
                [self._unknown_since(gap.start_ns)], gap.end_ns or self._block[1], part, NONE
            )
            self.add(row, counted=False)

    def _unknown_since(self, begin: int) -> int:
        """Return since when it is not known what the block's thread did, if the profiler stopped.

        The profiler has an event only if it had ended. Of a dispatch that had not, only the
        operations of its program are known, and not what is between them.
        """
        is_dispatch = np.array([kind == PartKind.DISPATCH for kind, _, _ in self.parts], bool)
        table = self.table
        own = table[(table["lane"] == 0) & (table["start"] < begin) & (table["part"] != NONE)]
        since = own["end"][is_dispatch[own["part"]]].max(initial=0)
        return int(own["start"][own["start"] >= since].min(initial=begin))

    def add_events_and_calls(self, runs: Sequence[Events]) -> None:
        """Add the events of the profiler and the host calls, each in its lane."""
        facts, calls = self._recording.lowered, self._recording.calls
        events, keys = self._events(runs)
        operations = _operations(keys)
        what = [self._what(key, operations.get(key)) for key in keys]
        sites, key_of = np.array([site for *_, site in what], np.int64), events["part"].copy()
        is_crossing = np.array([kind == PartKind.CROSSING for kind, *_ in what], bool)
        is_awaited = np.array([kind_of(fact) != BACKGROUND for fact in facts], bool)
        callers = np.flatnonzero(is_awaited[calls["lowered"]])
        crossings = np.flatnonzero(is_crossing[key_of])
        callbacks = self.site_of[calls["lowered"]]
        found = _containing(
            events[crossings], sites[key_of[crossings]], calls[callers], callbacks[callers]
        )
        event_of = np.full(len(calls), NONE)
        event_of[callers] = np.append(crossings, NONE)[found]
        key_of_call = np.append(key_of, NONE)[event_of]
        for key in np.flatnonzero(is_crossing & (sites == NONE)):
            called = callbacks[key_of_call == key]
            if len(called):  # an operation has one callback, also if the log lacks some calls
                sites[key] = np.bincount(called).argmax()
        parts = [
            self.part(kind, name, place)
            if site == NONE
            else self.part_of_callback(kind, site, place)
            for (kind, name, place, _), site in zip(what, sites.tolist(), strict=True)
        ]
        events["part"] = np.array(parts, np.int64)[key_of]
        self.add(events, ~np.array([key.is_rest for key in keys], bool)[key_of])
        # All calls with the same fact and operation are of one part.
        lines = [*(place for _, _, place, _ in what), None]
        pairs = key_of_call * len(facts) + calls["lowered"]
        pairs, inverse = np.unique(pairs, return_inverse=True)
        parts = [
            self.part_of_callback(kind_of(facts[lowered]), int(self.site_of[lowered]), lines[key])
            for key, lowered in (divmod(pair, len(facts)) for pair in pairs.tolist())
        ]
        self._add_calls(
            np.array(parts, np.int64)[inverse], np.append(events["lane"], NONE)[event_of]
        )

    def _events(self, runs: Sequence[Events]) -> tuple[np.ndarray, list[Key]]:
        """Return the events of all runs, whose parts are indices into the keys, in their lanes."""
        numbers: dict[tuple[str, int], int] = {("", 0): 0}
        tables, keys, kinds = [self.table], [], Counter()
        for run in runs:
            seen: Counter[str] = Counter()
            lanes = []
            for number, name in enumerate(run.lanes):
                # Threads of one name keep their order.
                place = (name, seen[name]) if number != run.own else ("", 0)
                seen[name] += number != run.own
                lanes.append(numbers.setdefault(place, len(numbers)))
            table = run.table.copy()
            table["lane"] = np.array(lanes, np.int64)[table["lane"]]
            table["part"] += len(keys)
            tables.append(table)
            keys += run.keys
        events = np.concatenate(tables)
        used = np.bincount(events["lane"], minlength=len(numbers))
        for (name, _), number in [*numbers.items()][1:]:
            kind = next((kind for begin, kind in _THREADS.items() if name.startswith(begin)), "")
            if kind and used[number]:
                kinds[kind] += 1
                name = f"{kind} thread {kinds[kind]}"
                self._unnamed += [number] * (kind == "Python")
            self.lanes.append(name)
        return events, keys

    def _what(
        self, key: Key, operation: elision.Operation | None
    ) -> tuple[PartKind, str, Frame | None, int]:
        """Return kind, name, line and call site of the events with a key."""
        if key.kind != "xla":
            return PartKind(key.kind), key.name, None, NONE
        if operation is None:  # the program is gone
            name = elision.without_number(key.name)
            return PartKind.CROSSING if CALLBACK.match(name) else PartKind.XLA, name, None, NONE
        name, place, index = operation
        if index is None:
            return PartKind.XLA, name, place, NONE
        found = {
            site: fact.site
            for site, fact in zip(self.site_of.tolist(), self._recording.lowered, strict=True)
            if fact.program and (fact.program.name, fact.index) == (key.module, index)
        }
        if len(found) > 1:  # several programs have this name
            line = place and (place.file, place.line)
            found = {n: site for n, site in found.items() if (site.file, site.line) == line}
        return PartKind.CROSSING, name, place, next(iter(found)) if len(found) == 1 else NONE

    def _add_calls(self, parts: np.ndarray, lanes: np.ndarray) -> None:
        """Add the host calls to the lanes of their crossings.

        A worker of an executor, for which a crossing waits, and a thread without crossings have a
        lane of their name.
        """
        calls, threads = self._recording.calls, self._recording.threads
        workers = [worker.thread for worker in self._recording.workers]
        by_worker = np.isin(calls["thread"], workers)
        for lane in self._unnamed:
            own = calls["thread"][(lanes == lane) & ~by_worker]
            name = lane_name(threads[np.bincount(own).argmax()]) if len(own) else _NAMELESS
            if name not in self.lanes and not name.startswith(_NAMELESS):
                self.lanes[lane] = name
        # The thread of a crossing waits while workers compute: it is not busy.
        waits = spans(calls["start_ns"], calls["end_ns"], NONE, lanes)[by_worker]
        self.table = np.concatenate([self.table, waits])
        lanes = np.where(by_worker, NONE, lanes)
        left = lanes == NONE
        for name, thread in sorted((lane_name(threads[n]), n) for n in {*calls["thread"][left]}):
            if name not in self.lanes:
                self.lanes.append(name)
            lanes[left & (calls["thread"] == thread)] = self.lanes.index(name)
        self.add(spans(calls["start_ns"], calls["end_ns"], parts, lanes))


def lane_name(thread: str) -> str:
    """Return how a lane names the thread that Python names `thread`."""
    return "main thread" if thread == "MainThread" else thread


def _containing(
    events: np.ndarray, sites: np.ndarray, calls: np.ndarray, callbacks: np.ndarray
) -> np.ndarray:
    """Return the number of the event that contains the crossing of each call, `NONE` if none does.

    Each event contains one crossing, of its own callback (`sites`) if that is known. Of several
    events, the one that ends first is taken: what is left of the others then contains each later
    crossing that any of them contained.
    """
    keys = calls["lowered"].astype(np.int64) << 32 | calls["crossing"]
    _, first, crossing = np.unique(keys, return_index=True, return_inverse=True)
    starts, ends = calls["start_ns"][first], calls["end_ns"][first]
    np.minimum.at(starts, crossing, calls["start_ns"])
    np.maximum.at(ends, crossing, calls["end_ns"])
    later = np.lexsort((events["end"], events["start"]))[::-1].tolist()
    begins, stops, sites_of = (one.tolist() for one in (events["start"], events["end"], sites))
    found, open_events = np.full(len(first), NONE), []
    columns = (one.tolist() for one in (starts, ends, callbacks[first]))
    for number, start, end, site in sorted(
        zip(range(len(first)), *columns, strict=True), key=itemgetter(1)
    ):
        while later and begins[later[-1]] <= start:
            open_events.append(later.pop())
        open_events = [event for event in open_events if stops[event] >= start]
        containing = [e for e in open_events if stops[e] >= end and sites_of[e] in (NONE, site)]
        if containing:
            event = found[number] = min(containing, key=stops.__getitem__)
            open_events.remove(event)
    return found[crossing]


def _operations(keys: Sequence[Key]) -> dict[Key, elision.Operation]:
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
