"""Build a `Profile` from what was collected in a block.

`_timeline` puts all sources into one table of spans. Each instant of the block belongs to one of
them, and each instant of a lane to one of its own (`_spans`). What is left of the block is Python
or idle, which the samples tell (`_samples`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ...recording import (
    BACKGROUND,
    OTHER,
    Compilation,
    Lane,
    Part,
    PartKind,
    Profile,
    Recording,
    kind_of,
)
from ._compilations import Stage
from ._events import Events
from ._samples import Samples, fill
from ._session import Gap
from ._spans import NONE, Division, divide, drawn
from ._timeline import Timeline

MAX_PARTS = 10  # of a kind; the others are added up
MAX_LANES = 15
PIECES = 1000  # of the block, each with one span in a lane
_KINDS = list(PartKind)  # an instant belongs to the first that applies


@dataclasses.dataclass(frozen=True)
class Collected:
    """What was collected in a block; times are on the recorder's clock."""

    start_ns: int
    end_ns: int
    thread: str  # the name of the block's thread
    ident: int  # and its number
    recording: Recording
    runs: Sequence[Events]
    event_ns: int
    reading_ns: int
    gaps: Sequence[Gap]
    samples: Samples
    stages: Sequence[Stage]
    programs: Sequence[Compilation]


def build(collected: Collected) -> Profile:
    """Divide the wall time of the block, and that of its threads and devices."""
    samples, block = collected.samples, (collected.start_ns, collected.end_ns)
    timeline = Timeline(collected.recording, collected.thread, block)
    timeline.add_events_and_calls(collected.runs)
    timeline.add_gaps(collected.gaps)
    timeline.add_stages(collected.stages, collected.ident)
    table, kinds = timeline.table, [kind for kind, _, _ in timeline.parts]
    # The last rank is that of a thread which waits for workers: it has no part.
    ranks = np.array([-_KINDS.index(kind) for kind in (*kinds, PartKind.HOST)])
    cuts = samples.times.tolist()
    whole = divide(*block, table[table["part"] != NONE], ranks, cuts)
    lanes = [
        divide(*block, table[table["lane"] == lane], ranks, () if lane else cuts)
        for lane in range(len(timeline.lanes))
    ]
    whole = fill(whole, lanes[0], samples, kinds, timeline.part_of_rest)
    wall, busy = _totals(whole), Counter[int]()
    for lane in lanes:
        busy.update(_totals(lane))
    _move(collected.recording, timeline, wall, busy)
    numbers, parts = _merged(timeline, wall, busy)
    return Profile(
        start_ns=collected.start_ns,
        wall_ns=collected.end_ns - collected.start_ns,
        parts=parts,
        lanes=_drawn(["wall time", *timeline.lanes], [whole, *lanes], numbers),
        compilations=tuple(collected.programs),
        events=sum(run.total for run in collected.runs),
        event_ns=collected.event_ns,
        reading_ns=collected.reading_ns,
    )


def _totals(division: Division) -> Counter[int]:
    """Return the time of each part."""
    edges, owners = division
    owned = owners != NONE
    totals = np.bincount(owners[owned], np.diff(edges)[owned])
    return Counter(dict(enumerate(totals.astype(np.int64).tolist())))


def _move(recording: Recording, timeline: Timeline, wall: Counter[int], busy: Counter[int]) -> None:
    """Move the time of which only the sum is known from crossings to the parts it belongs to.

    Crossings waited for a full queue, and calls did not fit into the log. Of the wall time of
    crossings, the same share is moved as of their busy time.
    """
    waits = [(PartKind.WAITING, use.lowered, use.waited_ns, 0) for use in recording.queue]
    lost = [
        (kind_of(recording.lowered[calls.lowered]), calls.lowered, calls.host_ns, calls.calls)
        for calls in recording.not_kept
    ]
    for kind, lowered, ns, times in waits + lost:
        site = int(timeline.site_of[lowered])
        crossings = {
            place: part
            for (of, _, place), part in timeline.parts.items()
            if of == PartKind.CROSSING and timeline.sites[part] == site and kind != BACKGROUND
        }
        if not times and not (crossings and ns):
            continue
        line = next(iter(crossings)) if len(crossings) == 1 else None
        part = timeline.part_of_callback(kind, site, line)
        timeline.counts[part] += times
        total = sum(busy[crossing] for crossing in crossings.values())
        share = min(ns / total, 1.0) if total else 0.0
        for crossing in crossings.values():
            moved = round(wall[crossing] * share)
            wall[crossing] -= moved
            wall[part] += moved
            busy[crossing] -= round(busy[crossing] * share)
        busy[part] += ns


def _merged(
    timeline: Timeline, wall: Counter[int], busy: Counter[int]
) -> tuple[np.ndarray, tuple[Part, ...]]:
    """Return the final number of each part, and the parts: the longest of each kind, and others."""
    every = [
        Part(*key, wall[n], busy[n], timeline.counts[n], timeline.sites[n])
        for n, key in enumerate(timeline.parts)
    ]
    numbers, final = np.full(len(every), NONE), []
    for kind in PartKind:
        own = [n for n, part in enumerate(every) if part.kind == kind and (wall[n] or busy[n])]
        own.sort(key=lambda n: (-wall[n], -busy[n]))
        numbers[own] = len(final) + np.minimum(np.arange(len(own)), MAX_PARTS)
        final += [every[n] for n in own[:MAX_PARTS]]
        if others := [every[n][3:6] for n in own[MAX_PARTS:]]:
            final.append(Part(kind, OTHER, None, *map(sum, zip(*others, strict=True))))
    return numbers, tuple(final)


def _drawn(
    names: Sequence[str], divisions: Sequence[Division], numbers: np.ndarray
) -> tuple[Lane, ...]:
    """Return the lanes as they are drawn: the block, then the busiest threads and devices."""
    divisions = [(edges, np.append(numbers, NONE)[owners]) for edges, owners in divisions]
    busy = [int(np.diff(edges)[owners != NONE].sum()) for edges, owners in divisions]
    kept = sorted(range(1, len(names)), key=lambda lane: -busy[lane])[:MAX_LANES]
    shown = [0, *(lane for lane in sorted(kept) if busy[lane])]
    return tuple(Lane(names[lane], drawn(divisions[lane], PIECES)) for lane in shown)
