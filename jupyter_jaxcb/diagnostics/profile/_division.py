"""Divide a span of time among intervals that overlap: each instant belongs to one of them.

Where nothing of JAX runs, Python runs or the thread waits; samples and its CPU time tell which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...recording import Frame

NOBODY = -1
_LONG = 1000  # segments; longer intervals are painted one by one


class Intervals(NamedTuple):
    """Intervals of one kind, which may overlap."""

    starts: np.ndarray
    ends: np.ndarray
    owners: np.ndarray  # a number for each interval

    def within(self, start: int, end: int) -> Intervals:
        """Return the part of the intervals between two times."""
        starts, ends = np.maximum(self.starts, start), np.minimum(self.ends, end)
        return Intervals(starts, ends, self.owners).chosen(ends > starts)

    def touching(self, start: int, end: int) -> Intervals:
        """Return the intervals, also empty ones, that are at least partly between two times."""
        is_late = (self.ends > start) | (self.starts >= start)
        return self.chosen((self.starts < end) & is_late)

    def chosen(self, which: np.ndarray) -> Intervals:
        """Return some of the intervals, in the order of their numbers or their flags."""
        return Intervals(*(column[which] for column in self))


NOTHING = Intervals(*np.empty((3, 0), np.int64))


def concatenated(intervals: Iterable[Intervals]) -> Intervals:
    """Return all intervals, one after the other."""
    return Intervals(*(np.concatenate(column) for column in zip(NOTHING, *intervals, strict=True)))


class Division(NamedTuple):
    """Consecutive segments of time, and who owns each of them."""

    edges: np.ndarray  # one more than segments
    owners: np.ndarray  # `NOBODY`, or a number of `Intervals`

    @property
    def lengths(self) -> np.ndarray:
        """The length of each segment."""
        return np.diff(self.edges)

    def totals(self, count: int) -> np.ndarray:
        """Return the time of each owner below `count`."""
        owned = self.owners != NOBODY
        return np.bincount(self.owners[owned], weights=self.lengths[owned], minlength=count).astype(
            np.int64
        )


def divide(
    start: int, end: int, layers: Sequence[Intervals], edges: Sequence[int] = ()
) -> Division:
    """Divide the time from `start` to `end` among the intervals of all layers.

    A later layer takes precedence over earlier ones. Within a layer, the shorter interval does: of
    nested ones, the innermost.

    Args:
        start: the beginning, in any unit.
        end: the end.
        layers: the intervals.
        edges: more times at which a segment ends.
    """
    layers = [layer.within(start, end) for layer in layers]
    inner = np.asarray([edge for edge in edges if start < edge < end], np.int64)
    cuts = [np.array([start, end], np.int64), inner]
    for layer in layers:
        cuts += [layer.starts, layer.ends]
    all_edges = np.sort(np.concatenate(cuts))  # `np.unique` hashes, which takes much longer
    all_edges = all_edges[np.diff(all_edges, prepend=all_edges[0] - 1) > 0]
    owners = np.full(len(all_edges) - 1, NOBODY, np.int64)
    for layer in layers:
        _paint(owners, all_edges, layer)
    return Division(all_edges, owners)


def _paint(owners: np.ndarray, edges: np.ndarray, layer: Intervals) -> None:
    longest_first = np.argsort(layer.starts - layer.ends, kind="stable")
    own = layer.owners[longest_first]
    # To look up sorted times and then to order them is faster than to look up ordered ones.
    first, last = (np.searchsorted(edges, one)[longest_first] for one in (layer.starts, layer.ends))
    ranks = np.arange(len(own))  # the shortest interval has the highest
    best = np.full(len(owners), NOBODY, np.int64)
    is_long = last - first > _LONG
    counts = (last - first)[~is_long]
    # The numbers of all segments of all intervals: of equal ones, NumPy stores the last.
    segments = np.repeat(first[~is_long] - np.cumsum(counts) + counts, counts)
    best[segments + np.arange(counts.sum())] = np.repeat(ranks[~is_long], counts)
    for begin, stop, rank in zip(first[is_long], last[is_long], ranks[is_long], strict=True):
        np.maximum(best[begin:stop], rank, out=best[begin:stop])
    is_owned = best != NOBODY
    owners[is_owned] = own[best[is_owned]]


def spans(division: Division, buckets: int) -> tuple[int, ...]:
    """Return start, duration and owner of the longest spans, at most `buckets` of them, flat.

    The time is cut into `buckets` equal pieces, each of which goes to its largest owner. Times are
    counted from the first edge. Pieces that are mostly free are left out.
    """
    start, end = int(division.edges[0]), int(division.edges[-1])
    if start == end:
        return ()
    cuts = np.unique(np.linspace(start, end, buckets + 1).astype(np.int64))
    inner = cuts[1:-1]
    at = np.searchsorted(division.edges, inner, side="right")
    edges = np.insert(division.edges[:-1], at, inner)
    owners = np.insert(division.owners, at, division.owners[at - 1])
    piece = np.searchsorted(inner, edges, side="right")
    shape = len(cuts) - 1, int(owners.max()) + 2  # the first column is that of `NOBODY`
    shares = np.bincount(
        piece * shape[1] + owners - NOBODY, np.diff(edges, append=end), shape[0] * shape[1]
    )
    largest = shares.reshape(shape).argmax(axis=1) + NOBODY
    changes = np.flatnonzero(np.diff(largest, prepend=largest[0] - 1))
    found: list[int] = []
    for begin, stop in zip(changes, [*changes[1:], len(largest)], strict=True):
        if largest[begin] != NOBODY:
            found += [
                int(cuts[begin]) - start, int(cuts[stop] - cuts[begin]), int(largest[begin])
            ]  # fmt: skip
    return tuple(found)


_Where = tuple[Frame | None, bool]  # a line, and whether JAX's own Python runs for it
_COVERED = 0.95  # of an interval between samples, to count as covered


class Samples(NamedTuple):
    """Samples of the block's thread; the first and the last are the edges of the block."""

    times: np.ndarray  # on the recorder's clock
    cpu: np.ndarray  # the CPU time of the thread until then, in nanoseconds
    places: Sequence[Frame | None]  # the innermost line of user code
    in_jax: np.ndarray  # whether JAX's own Python runs for that line


class Outside(NamedTuple):
    """The time of a block in which nothing of JAX runs, between each two samples."""

    python_ns: np.ndarray  # in which Python runs
    waiting_ns: np.ndarray  # in which nothing runs
    background: np.ndarray  # the share of the time of calls in the background when only they run

    def runs(self, interval: np.ndarray) -> np.ndarray:
        """Return whether Python runs for most of the free time of these intervals."""
        return (self.python_ns > self.waiting_ns)[interval]


def outside(block: Division, is_free: np.ndarray, own: Division, samples: Samples) -> Outside:
    """Divide the time that `block` leaves free by the CPU time of the thread.

    The thread's CPU time also pays for what JAX does in it. If some intervals are all JAX, their
    CPU time tells how much that is; otherwise JAX is taken to compute all the time.

    Args:
        block: who owns each instant of the block.
        is_free: for each of its segments, whether nobody or a call in the background owns it.
        own: what the block's own thread does for JAX.
        samples: the samples; `block` and `own` have edges at their times.
    """
    free = _per_interval(block, is_free, samples)
    background = free - _per_interval(block, block.owners == NOBODY, samples)
    known = _per_interval(own, own.owners != NOBODY, samples)
    cpu, lengths = np.diff(samples.cpu), np.diff(samples.times)
    covered = known >= _COVERED * lengths
    load = cpu[covered].sum() / max(known[covered].sum(), 1) if covered.any() else 1.0
    python = np.clip(cpu - min(load, 1.0) * known, 0, free).astype(np.int64)
    alone = np.minimum(background, free - python)
    return Outside(python, free - python - alone, alone / np.maximum(background, 1))


def interval_of(division: Division, samples: Samples) -> np.ndarray:
    """Return the number of the interval between samples in which each segment lies."""
    found = np.searchsorted(samples.times, division.edges[:-1], side="right") - 1
    return np.clip(found, 0, len(samples.times) - 2)


def by_place(
    block: Division, is_free: np.ndarray, found: Outside, samples: Samples
) -> tuple[dict[_Where, int], dict[_Where, int]]:
    """Divide the time by the line of the samples: that of Python, and that of waiting.

    The time of Python is also divided by whether JAX's own Python runs. Only samples in free time
    count: in other time, the events of the profiler show what runs.
    """
    at = np.searchsorted(block.edges, samples.times, side="right") - 1
    at = np.clip(at, 0, len(block.owners) - 1)
    counts: tuple[dict[_Where, int], dict[_Where, int]] = {}, {}
    for number, (place, in_jax) in enumerate(zip(samples.places, samples.in_jax, strict=True)):
        if (place is None and not in_jax) or not is_free[at[number]] or not number:
            continue
        waits = bool(found.waiting_ns[number - 1] >= found.python_ns[number - 1])
        own, where = counts[waits], (place, bool(in_jax) and not waits)
        own[where] = own.get(where, 0) + 1
    totals = int(found.python_ns.sum()), int(found.waiting_ns.sum())
    return tuple(_shared(total, own) for total, own in zip(totals, counts, strict=True))  # type: ignore


def _shared(total: int, counts: dict[_Where, int]) -> dict[_Where, int]:
    """Divide `total` in the proportion of the counts, without a rest."""
    if not total:
        return {}
    if not counts:
        return {(None, False): total}
    places = list(counts)
    bounds = np.cumsum([0, *counts.values()]) * total // sum(counts.values())
    return {place: int(n) for place, n in zip(places, np.diff(bounds), strict=True)}


def _per_interval(division: Division, which: np.ndarray, samples: Samples) -> np.ndarray:
    numbers, count = interval_of(division, samples)[which], len(samples.times) - 1
    return np.bincount(numbers, weights=division.lengths[which], minlength=count).astype(np.int64)
