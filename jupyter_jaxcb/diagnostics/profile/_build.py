"""Build a `Profile` from what was collected in a block."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...recording import (
    OTHER,
    PYTHON_OF_JAX,
    Compilation,
    Frame,
    Lane,
    Part,
    PartKind,
    Profile,
    Recording,
)
from ._compilations import Stage
from ._division import (
    NOBODY,
    Division,
    Intervals,
    Outside,
    Samples,
    by_place,
    concatenated,
    divide,
    interval_of,
    outside,
    spans,
)
from ._events import Events
from ._lanes import ThreadLane, add_calls, lanes_of
from ._parts import Parts
from ._queue import BACKGROUND, in_background, kind_of, waits
from ._session import Gap

MAX_PARTS = 10  # of a kind; the others are added up
MAX_LANES = 15
PIECES = 1000  # of the block, each with one span in a lane
# The kinds of intervals; a later one takes precedence.
_LAYERS = (
    PartKind.UNKNOWN,
    BACKGROUND,
    PartKind.DISPATCH,
    PartKind.COMPILATION,
    PartKind.XLA,
    PartKind.COPY,
    PartKind.CROSSING,
    PartKind.HOST,
)


@dataclasses.dataclass(frozen=True)
class Collected:
    """What was collected in a block; times are on the recorder's clock."""

    start_ns: int
    end_ns: int
    thread: str  # the name of the lane of the block's thread
    ident: int  # and its number
    recording: Recording
    events: Sequence[Events]
    event_ns: int
    reading_ns: int
    gaps: Sequence[Gap]
    samples: Samples
    stages: Sequence[Stage]
    programs: Sequence[Compilation]


class _Block(NamedTuple):
    """The block as a whole, divided."""

    division: Division
    is_free: np.ndarray
    found: Outside


def build(collected: Collected) -> Profile:
    """Divide the wall time of the block, and that of its threads and devices."""
    parts = Parts(collected.recording)
    lanes, layers = _intervals(collected, parts)
    kinds = [kind for kind, _, _ in parts.keys]
    samples = collected.samples
    edges = samples.times.tolist()
    start, end = collected.start_ns, collected.end_ns
    divided = [
        divide(start, end, _of_lane(lane, kinds, collected, layers), edges if lane.is_own else ())
        for lane in lanes
    ]
    division = divide(start, end, [layers[kind] for kind in _LAYERS], edges)
    may_be_free = np.array([kind == BACKGROUND for kind in kinds] + [True])
    is_free = may_be_free[division.owners]  # the last one is that of `NOBODY`
    own = [one for lane, one in zip(lanes, divided, strict=True) if lane.is_own]
    found = outside(division, is_free, own[0] if own else divide(start, end, [], edges), samples)
    block = _Block(division, is_free, found)
    sums = _only_sums(collected.recording, parts)
    wall = _wall(block, collected, parts)
    drawn = [("wall time", _drawn(block, samples, parts))]
    busy = np.zeros(len(parts.keys), np.int64)
    for lane, one in zip(lanes, divided, strict=True):
        busy += one.totals(len(busy))
        drawn.append((lane.name, one))
    busy = np.concatenate([busy, np.zeros(len(wall) - len(busy), np.int64)])
    _move(sums, wall, busy)
    numbers, final = _merged(parts, wall, busy)
    return Profile(
        start_ns=start,
        wall_ns=end - start,
        parts=final,
        lanes=_drawn_lanes(drawn, numbers),
        compilations=tuple(collected.programs),
        events=sum(events.total for events in collected.events),
        event_ns=collected.event_ns,
        reading_ns=collected.reading_ns,
    )


def _intervals(
    collected: Collected, parts: Parts
) -> tuple[list[ThreadLane], dict[PartKind, Intervals]]:
    """Return the lanes, and all intervals by their kind; number and count the parts."""
    numbered = [(events, parts.of_events(events.keys)) for events in collected.events]
    host, background = parts.host_calls()
    compiled = parts.compilations(collected.stages)
    lanes = lanes_of(numbered, collected.thread)
    for lane in lanes:
        lane.events, host = parts.name_crossings(lane.events, host)
    for lane in lanes:
        lane.events = parts.name_crossings_without_rows(lane.events)
    kinds = np.array([_LAYERS.index(kind) for kind, _, _ in parts.keys], np.int64)
    events = concatenated([lane.events for lane in lanes])
    block = collected.start_ns, collected.end_ns
    for intervals in (events, host, background):
        parts.count(intervals.touching(*block).owners)
    parts.count(_rests(numbered).touching(*block).owners, by=-1)
    layers = {
        kind: events.chosen(kinds[events.owners] == number) for number, kind in enumerate(_LAYERS)
    }
    layers |= {PartKind.HOST: host, BACKGROUND: background, PartKind.COMPILATION: compiled}
    gaps = [
        gap._replace(start_ns=_unknown_since(gap.start_ns, lanes, parts)) for gap in collected.gaps
    ]
    layers[PartKind.UNKNOWN] = parts.gaps(gaps, collected.end_ns)
    _add_calls(lanes, parts, collected.recording, host, background)
    return lanes, layers


def _rests(numbered: Sequence[tuple[Events, np.ndarray]]) -> Intervals:
    """Return the events that go on with what another one began."""
    found = []
    for events, numbers in numbered:
        is_rest = np.array([key.is_rest for key in events.keys], bool)
        for lane in events.lanes:
            own = Intervals(lane.starts, lane.ends, numbers[lane.keys])
            found.append(own.chosen(is_rest[lane.keys]))
    return concatenated(found)


def _unknown_since(begin: int, lanes: Sequence[ThreadLane], parts: Parts) -> int:
    """Return since when it is not known what the block's thread did, if the profiler stopped then.

    The profiler has an event only if it had ended. Of a dispatch that had not, only the operations
    of its program are known, and not what is between them.
    """
    dispatches = [n for n, (kind, _, _) in enumerate(parts.keys) if kind == PartKind.DISPATCH]
    for lane in lanes:
        if lane.is_own:
            starts, ends, owners = lane.events.chosen(lane.events.starts < begin)
            since = ends[np.isin(owners, dispatches)].max(initial=0)
            return int(starts[starts >= since].min(initial=begin))
    return begin


def _add_calls(
    lanes: list[ThreadLane],
    parts: Parts,
    recording: Recording,
    host: Intervals,
    background: Intervals,
) -> None:
    crossings, places = parts.crossings, [place for _, _, place in parts.keys]
    keys = zip(parts.lowered, places, strict=True)
    crossing_of = np.array([crossings.get(key, -1) for key in keys], np.int64)
    rows, behind = recording.calls, in_background(recording)
    add_calls(lanes, host, rows[~behind], recording, crossing_of)
    add_calls(lanes, background, rows[behind], recording, np.full_like(crossing_of, -1))


def _of_lane(
    lane: ThreadLane,
    kinds: Sequence[PartKind],
    collected: Collected,
    layers: dict[PartKind, Intervals],
) -> list[Intervals]:
    """Return the layers of one thread or device."""
    order = np.array([_LAYERS.index(kind) for kind in kinds], np.int64)[lane.events.owners]
    found = []
    for number, kind in enumerate(_LAYERS):
        own = [lane.events.chosen(order == number)]
        if kind == PartKind.COMPILATION and lane.is_own:
            threads = np.array([stage.thread for stage in collected.stages], np.int64)
            own.append(layers[kind].chosen(threads == collected.ident))
        if kind == PartKind.HOST:
            # The thread of a crossing waits while workers compute: it is not busy.
            own += [
                calls._replace(owners=np.full_like(calls.owners, NOBODY)) for calls in lane.waits
            ]
            own += lane.calls
        found.append(concatenated(own))
    return found


def _wall(block: _Block, collected: Collected, parts: Parts) -> np.ndarray:
    """Return the share of each part in the wall time; parts of free time are added."""
    division, _, found = block
    samples = collected.samples
    weights = division.lengths.astype(float)
    at = interval_of(division, samples)
    behind = block.is_free & (division.owners != NOBODY)
    weights[behind] *= found.background[at][behind]
    owned = division.owners != NOBODY
    wall = np.bincount(division.owners[owned], weights[owned], minlength=len(parts.keys))
    places = by_place(division, block.is_free, found, samples)
    more = {}
    for kind, own in zip((PartKind.PYTHON, PartKind.IDLE), places, strict=True):
        for (place, in_jax), total in own.items():
            key = (PartKind.DISPATCH, PYTHON_OF_JAX) if in_jax else (kind, _function(place))
            more[parts.number(*key, place)] = total
    wall = np.concatenate([wall, np.zeros(len(parts.keys) - len(wall))])
    for number, total in more.items():
        wall[number] += total
    return wall


class _Sum(NamedTuple):
    """Time of which only the sum is known, over all devices, and not when it was."""

    crossings: list[int]  # the parts that have it
    part: int  # the part to which it belongs
    ns: int


def _only_sums(recording: Recording, parts: Parts) -> list[_Sum]:
    """Return how long crossings waited for a full queue, and how long calls without rows took."""
    found = []
    for lowered, waited_ns in waits(recording):
        crossings = parts.crossings_of(lowered)
        if crossings:
            part = parts.of_callback(PartKind.WAITING, lowered)
            found.append(_Sum([*crossings.values()], part, waited_ns))
    for calls in recording.not_kept:
        kind = kind_of(recording.lowered[calls.lowered])
        crossings = {} if kind == BACKGROUND else parts.crossings_of(calls.lowered)
        place = next(iter(crossings)) if len(crossings) == 1 else None
        part = parts.of_callback(kind, calls.lowered, place)
        parts.counts[part] += calls.calls
        found.append(_Sum([*crossings.values()], part, calls.host_ns))
    return found


def _move(sums: Sequence[_Sum], wall: np.ndarray, busy: np.ndarray) -> None:
    """Move the time of which only the sum is known from crossings to the parts it belongs to.

    Of the wall time of crossings, the same share is moved as of their busy time.
    """
    for numbers, part, ns in sums:
        crossings = np.array(numbers, np.int64)
        total = busy[crossings].sum()
        share = min(ns / total, 1.0) if total else 0.0
        wall[part] += (wall[crossings] * share).sum()
        wall[crossings] *= 1 - share
        busy[crossings] -= np.round(busy[crossings] * share).astype(np.int64)
        busy[part] += ns


def _function(place: Frame | None) -> str:
    return "" if place is None or place.function.startswith("<") else place.function


def _drawn(block: _Block, samples: Samples, parts: Parts) -> Division:
    """Return the block for its picture: free time is Python's, JAX's or idle, by interval."""
    division, is_free, found = block
    first = {kind: number for (kind, _, _), number in reversed(parts.keys.items())}
    of_jax = [number for (_, name, _), number in parts.keys.items() if name == PYTHON_OF_JAX]
    python = first.get(PartKind.PYTHON, of_jax[0] if of_jax else NOBODY)
    at = interval_of(division, samples)
    owners = division.owners.copy()
    nobody = owners == NOBODY
    owners[nobody] = first.get(PartKind.IDLE, NOBODY)
    runs = is_free & found.runs(at)
    owners[runs] = python
    # An interval has the line of the sample at its end.
    owners[runs & samples.in_jax[1:][at]] = of_jax[0] if of_jax else python
    return Division(division.edges, owners)


def _merged(
    parts: Parts, wall: np.ndarray, busy: np.ndarray
) -> tuple[np.ndarray, tuple[Part, ...]]:
    """Return the final number of each part, and the parts: the longest of each kind, then others.

    The shares of the wall time are rounded so that their sum stays what it was.
    """
    exact = np.round(np.cumsum(wall)).astype(np.int64)
    shares = np.diff(exact, prepend=0)
    keys = list(parts.keys)
    numbers = np.full(len(keys), NOBODY, np.int64)
    final: list[Part] = []
    for kind in PartKind:
        own = [n for n, key in enumerate(keys) if key[0] == kind and (shares[n] or busy[n])]
        own.sort(key=lambda n: (-shares[n], -busy[n]))
        for place, n in enumerate(own):
            part = Part(
                kind, keys[n][1], keys[n][2], int(shares[n]), int(busy[n]), parts.counts[n],
                parts.lowered[n],
            )  # fmt: skip
            if place > MAX_PARTS:
                final[-1] = _added(final[-1], part)
            else:
                final.append(part if place < MAX_PARTS else _added(None, part))
            numbers[n] = len(final) - 1
    return numbers, tuple(final)


def _added(other: Part | None, part: Part) -> Part:
    if other is None:
        return part._replace(name=OTHER, place=None, lowered=-1)
    return other._replace(
        wall_ns=other.wall_ns + part.wall_ns,
        busy_ns=other.busy_ns + part.busy_ns,
        times=other.times + part.times,
    )


def _drawn_lanes(drawn: Sequence[tuple[str, Division]], numbers: np.ndarray) -> tuple[Lane, ...]:
    """Return the lanes as they are drawn: the block, then the busiest threads and devices."""
    found = []
    for name, division in drawn:
        final = np.append(numbers, NOBODY)[division.owners]
        lane = Lane(name, spans(Division(division.edges, final), PIECES))
        busy = int(division.lengths[final != NOBODY].sum())
        found.append((busy, lane))
    (_, block), *threads = found
    kept = sorted(threads, key=lambda one: -one[0])[:MAX_LANES]
    return block, *(lane for busy, lane in threads if (busy, lane) in kept and busy)
