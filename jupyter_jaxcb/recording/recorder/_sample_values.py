"""Collect sample values of host calls, and count non-finite results."""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._facts import LoweredSite, NotFinite, SampleValues, Site

SAMPLES = 3  # calls kept for each site and shard, in each cell or block
ELEMENTS = 6  # elements kept of an array
KEPT = 1_000  # sampled calls kept in total

# The shape and copies of the first elements, never the user's array.
_Head = tuple[tuple[int, ...], np.ndarray]
_Whose = tuple[Site, int | None, bool]  # site, shard, failed: `SAMPLES` calls are kept of each


class _Everything:
    """A set that contains everything, so that no site is sampled."""

    def __contains__(self, other: object) -> bool:
        return True

    def add(self, other: object) -> None:
        """Do nothing."""


class Values:
    """The sample values of a recorder; thread-safe.

    Args:
        wanted: whether to keep sample values.

    Attributes:
        full: the sites that need no more sample values; checked on every host call.
    """

    def __init__(self, wanted: bool = True) -> None:
        self._wanted = wanted
        self._kept: list[tuple[LoweredSite, int, int, list[_Head], list[_Head], bool]] = []
        self._taken: dict[_Whose, int] = {}
        self._not_finite: dict[LoweredSite, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self.full: Any = set() if wanted else _Everything()

    def __len__(self) -> int:
        return len(self._kept)

    def begin(self) -> None:
        """Begin a cell or block, of which the first calls are kept too."""
        with self._lock:
            self._taken = {}
            if self._wanted:
                self.full = set()

    def take(
        self,
        lowered: LoweredSite,
        crossing: int,
        element: int,
        operands: Iterable[Any],
        results: Iterable[Any],
        *,
        failed: bool = False,
    ) -> None:
        """Keep the first elements of the arrays of one host call, if there is room.

        Failed calls are limited separately.
        """
        with self._lock:
            whose = _whose(lowered, failed)
            count = self._taken[whose] = self._taken.get(whose, 0) + 1
            full = len(self._kept) >= KEPT
            if not failed and (count >= SAMPLES or full):
                self.full.add(lowered)
            if self._wanted and count <= SAMPLES and not full:
                heads = [*map(_head, operands)], [*map(_head, results)]
                self._kept.append((lowered, crossing, element, *heads, failed))

    def not_finite(self, lowered: LoweredSite, produced: int, passed_on: int) -> None:
        """Count host calls that returned NaN or infinity, for finite and for other arguments."""
        with self._lock:
            before = self._not_finite.get(lowered, (0, 0))
            self._not_finite[lowered] = (before[0] + produced, before[1] + passed_on)

    def counted(self) -> dict[LoweredSite, tuple[int, int]]:
        """Return the numbers of calls with non-finite results so far, by site."""
        with self._lock:
            return dict(self._not_finite)

    def changed(self, since: Mapping[LoweredSite, tuple[int, int]]) -> set[LoweredSite]:
        """Return the sites with non-finite results since `since`."""
        return {fact for fact, counts in self.counted().items() if counts != since.get(fact)}

    def sample_values(
        self, since: int, place: Mapping[LoweredSite, int]
    ) -> tuple[SampleValues, ...]:
        """Format the samples kept after the first `since`."""
        found, taken = [], collections.Counter()
        for fact, crossing, element, operands, results, failed in self._kept[since:]:
            taken[_whose(fact, failed)] += 1  # a nested block may have kept more
            if fact in place and taken[_whose(fact, failed)] <= SAMPLES:
                words = _words(operands), _words(results)
                found.append(SampleValues(place[fact], crossing, element, *words, failed))
        return tuple(found)

    def unsound(
        self, since: Mapping[LoweredSite, tuple[int, int]], place: Mapping[LoweredSite, int]
    ) -> tuple[NotFinite, ...]:
        """Count the calls with non-finite results since `since`, by site."""
        found = []
        for fact, (produced, passed_on) in self.counted().items():
            before = since.get(fact, (0, 0))
            new = (produced - before[0], passed_on - before[1])
            if any(new) and fact in place:
                found.append(NotFinite(place[fact], *new))
        return tuple(found)


def _whose(lowered: LoweredSite, failed: bool) -> _Whose:
    return lowered.site, lowered.shard, failed


def _head(value: Any) -> _Head:
    array = np.asarray(value)
    return array.shape, array.flat[:ELEMENTS]


def _words(heads: Sequence[_Head]) -> tuple[str, ...]:
    return tuple(_word(shape, head) for shape, head in heads)


def _word(shape: tuple[int, ...], head: np.ndarray) -> str:
    """Format as ``0.25``, ``[1, 2, 3]`` or ``[0, 0.1, 0.2, …]``: row-major, without the shape."""
    elements = [_element(value) for value in head.tolist()]
    if not shape:
        return elements[0]
    more = ["…"] if np.prod(shape, dtype=np.int64) > len(elements) else []
    return f"[{', '.join([*elements, *more])}]"


def _element(value: Any) -> str:
    if isinstance(value, complex):
        return f"{value:.4g}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
