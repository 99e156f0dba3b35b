"""Divide the time in which nothing of JAX runs: does Python run, or does the thread wait?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...recording import Frame
from ._division import NOBODY, Division

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
    count = len(samples.times) - 1
    free = _per_interval(block, is_free, samples, count)
    background = free - _per_interval(block, block.owners == NOBODY, samples, count)
    known = _per_interval(own, own.owners != NOBODY, samples, count)
    cpu, lengths = np.diff(samples.cpu), np.diff(samples.times)
    covered = known >= _COVERED * lengths
    load = cpu[covered].sum() / max(known[covered].sum(), 1) if covered.any() else 1.0
    python = np.clip(cpu - min(load, 1.0) * known, 0, free).astype(np.int64)
    alone = np.minimum(background, free - python)
    return Outside(python, free - python - alone, alone / np.maximum(background, 1))


def interval_of(division: Division, samples: Samples) -> np.ndarray:
    """Return the number of the interval between samples in which each segment lies."""
    return np.searchsorted(samples.times, division.edges[:-1], side="right") - 1


def by_place(
    block: Division, is_free: np.ndarray, found: Outside, samples: Samples
) -> tuple[dict[_Where, int], dict[_Where, int]]:
    """Divide the time by the line of the samples: that of Python, and that of waiting.

    The time of Python is also divided by whether JAX's own Python runs. Only samples in free time
    count: in other time, the events of the profiler tell what runs.
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


def _per_interval(
    division: Division, which: np.ndarray, samples: Samples, count: int
) -> np.ndarray:
    numbers = np.clip(interval_of(division, samples)[which], 0, count - 1)
    return np.bincount(numbers, weights=division.lengths[which], minlength=count).astype(np.int64)
