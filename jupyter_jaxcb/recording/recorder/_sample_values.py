"""What host calls were given and answered: small sample values, and where they were not finite."""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._facts import LoweredSite, NotFinite, SampleValues, Site

SAMPLES = 3  # calls of each site, and shard, that are kept in each cell or block
ELEMENTS = 6  # of an array that are kept
KEPT = 1_000  # sample values in all

# The shape, and copies of the first elements: never the user's array.
_Head = tuple[tuple[int, ...], np.ndarray]
_Whose = tuple[Site, int | None, bool]  # site, shard, whether it failed: each has its first calls


class _Everything:
    """A set that holds everything: no site is to be sampled."""

    def __contains__(self, other: object) -> bool:
        return True

    def add(self, other: object) -> None:
        """Nothing to add."""


class Values:
    """Sample values of a recorder, taken from any thread.

    Args:
        wanted: False keeps no sample values.

    Attributes:
        full: the sites whose sample values are complete; asked on every host call.
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
        """A cell or block begins: its first calls are kept too."""
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
        """Keeps the first elements of one host call's arrays, if there is room.

        Failing calls have room of their own.
        """
        with self._lock:
            count = self._taken.get(_whose(lowered, failed), 0) + 1
            self._taken[_whose(lowered, failed)] = count
            full = len(self._kept) >= KEPT
            if not failed and (count >= SAMPLES or full):
                self.full.add(lowered)
            if self._wanted and count <= SAMPLES and not full:
                heads = [*map(_head, operands)], [*map(_head, results)]
                self._kept.append((lowered, crossing, element, *heads, failed))

    def not_finite(self, lowered: LoweredSite, produced: int, passed_on: int) -> None:
        """Host calls answered NaN or infinity: of finite arguments, and of others."""
        with self._lock:
            before = self._not_finite.get(lowered, (0, 0))
            self._not_finite[lowered] = (before[0] + produced, before[1] + passed_on)

    def counted(self) -> dict[LoweredSite, tuple[int, int]]:
        """How many calls were not finite so far."""
        with self._lock:
            return dict(self._not_finite)

    def changed(self, since: Mapping[LoweredSite, tuple[int, int]]) -> set[LoweredSite]:
        """The sites with calls that were not finite since `since`."""
        return {fact for fact, counts in self.counted().items() if counts != since.get(fact)}

    def sample_values(
        self, since: int, place: Mapping[LoweredSite, int]
    ) -> tuple[SampleValues, ...]:
        """Those kept since there were `since` of them, in words."""
        found, taken = [], collections.Counter()
        for fact, crossing, element, operands, results, failed in self._kept[since:]:
            taken[_whose(fact, failed)] += 1  # a block in the block has kept some more
            if fact in place and taken[_whose(fact, failed)] <= SAMPLES:
                words = _words(operands), _words(results)
                found.append(SampleValues(place[fact], crossing, element, *words, failed))
        return tuple(found)

    def unsound(
        self, since: Mapping[LoweredSite, tuple[int, int]], place: Mapping[LoweredSite, int]
    ) -> tuple[NotFinite, ...]:
        """The sites with calls that were not finite since `since`."""
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
    """``0.25``, ``[1, 2, 3]``, ``[0, 0.1, 0.2, …]``: row-major, without the shape."""
    elements = [_element(value) for value in head.tolist()]
    if not shape:
        return elements[0]
    more = ["…"] if np.prod(shape, dtype=np.int64) > len(elements) else []
    return f"[{', '.join([*elements, *more])}]"


def _element(value: Any) -> str:
    if isinstance(value, complex):
        return f"{value:.4g}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
