"""Collect sample values of host calls, and count non-finite results."""

from __future__ import annotations

import collections
import operator
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .._facts import ArrayValues, LoweredSite, NotFinite, NotFiniteCall, SampleValues, Site
from ._array_values import array_values

SAMPLES = 3  # calls kept for each site and shard, in each cell or block
ELEMENTS = 6  # elements kept of an array
KEPT = 1_000  # sampled calls kept in total
MARKED = 10_000  # calls with non-finite results that are kept in total

# The shape and copies of the first elements, never the user's array.
_Head = tuple[tuple[int, ...], np.ndarray]
Group = Literal["first", "failed", "not finite"]  # why a call is sampled
_Whose = tuple[Site, int | None, Group]  # site, shard: `SAMPLES` calls are kept of each
_Arrays = tuple[ArrayValues, ...]
# Site and batch element of a call, and the number of its crossing; ~start_ns if that is not known.
_Call = tuple[LoweredSite, int, int]
_Crossings = Mapping[tuple[int, int], int]  # by site and start


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
        self._kept: list[tuple[_Call, list[_Head], list[_Head], _Arrays, Group]] = []
        self._taken: dict[_Whose, int] = {}
        self._not_finite: dict[LoweredSite, tuple[int, int, int]] = {}
        self._marked: list[tuple[_Call, bool]] = []  # with non-finite results; passed on?
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
        group: Group = "first",
    ) -> None:
        """Keep the first elements of the arrays of one host call, if there is room.

        Calls that failed, and those with non-finite results, are limited separately.
        """
        with self._lock:
            whose = lowered.site, lowered.shard, group
            count = self._taken[whose] = self._taken.get(whose, 0) + 1
            full = len(self._kept) >= KEPT
            if group == "first" and (count >= SAMPLES or full):
                self.full.add(lowered)
            if self._wanted and count <= SAMPLES and not full:
                given, made = list(operands), list(results)
                heads = [*map(_head, given)], [*map(_head, made)]
                found = (array_values(n, one, ELEMENTS) for n, one in enumerate(given + made))
                arrays = tuple(one for one in found if one is not None)
                self._kept.append(((lowered, element, crossing), *heads, arrays, group))

    def mark(self, lowered: LoweredSite, crossing: int, element: int, passed_on: bool) -> None:
        """Keep which host call returned NaN or infinity, if there is room.

        Args:
            lowered: the site.
            crossing: the number of the crossing; ``~start_ns`` of the call if it is not known yet.
            element: the batch element; -1 if there is none.
            passed_on: the arguments of the call had NaN or infinity.
        """
        if len(self._marked) < MARKED:
            self._marked.append(((lowered, element, crossing), passed_on))

    def not_finite(
        self, lowered: LoweredSite, produced: int, passed_on: int, infinite: int = 0
    ) -> None:
        """Count host calls that returned NaN or infinity; see `NotFinite` for the three counts."""
        with self._lock:
            before = self._not_finite.get(lowered, _NONE)
            self._not_finite[lowered] = _added(before, (produced, passed_on, infinite))

    def counted(self) -> dict[LoweredSite, tuple[int, int, int]]:
        """Return the numbers of calls with non-finite results so far, by site."""
        with self._lock:
            return dict(self._not_finite)

    def changed(self, since: Mapping[LoweredSite, tuple[int, int, int]]) -> set[LoweredSite]:
        """Return the sites with non-finite results since `since`."""
        return {fact for fact, counts in self.counted().items() if counts != since.get(fact)}

    def sample_values(
        self, since: int, place: Mapping[LoweredSite, int], calls: np.ndarray
    ) -> tuple[SampleValues, ...]:
        """Format the samples kept after the first `since`.

        Args:
            since: the number of samples to leave out.
            place: the number of each site.
            calls: the rows of the log, whose sites have these numbers.
        """
        kept = self._kept[since:]
        crossings = _crossings(calls, place, [call for call, *_ in kept])
        taken: collections.Counter[_Whose] = collections.Counter()
        found: dict[tuple[int, int, int], SampleValues] = {}
        for call, operands, results, arrays, group in kept:
            fact = call[0]
            whose = fact.site, fact.shard, group
            taken[whose] += 1  # a nested block may have kept more
            known = _known(call, place, crossings)
            if known and known not in found and taken[whose] <= SAMPLES:
                words = _words(operands), _words(results)
                found[known] = SampleValues(*known, *words, group == "failed", arrays)
        return tuple(found.values())

    def marked(
        self, place: Mapping[LoweredSite, int], calls: np.ndarray
    ) -> tuple[NotFiniteCall, ...]:
        """Return those of `calls` that returned NaN or infinity; see `sample_values`."""
        marked = list(self._marked)
        crossings = _crossings(calls, place, [call for call, _ in marked])
        wanted = set(np.unique(calls["crossing"]).tolist()) if marked else set()
        found = []
        for call, passed_on in marked:
            known = _known(call, place, crossings)
            if known and known[1] in wanted:
                found.append(NotFiniteCall(*known, passed_on))
        return tuple(found)

    def unsound(
        self, since: Mapping[LoweredSite, tuple[int, int, int]], place: Mapping[LoweredSite, int]
    ) -> tuple[NotFinite, ...]:
        """Count the calls with non-finite results since `since`, by site."""
        found = []
        for fact, counts in self.counted().items():
            new = _added(counts, [-count for count in since.get(fact, _NONE)])
            if any(new) and fact in place:
                found.append(NotFinite(place[fact], *new))
        return tuple(found)


_NONE = (0, 0, 0)


def _added(counts: Sequence[int], others: Sequence[int]) -> tuple[int, int, int]:
    produced, passed_on, infinite = map(operator.add, counts, others)
    return produced, passed_on, infinite


def _crossings(
    calls: np.ndarray, place: Mapping[LoweredSite, int], wanted: Iterable[_Call]
) -> _Crossings:
    """Return the crossings of the `wanted` calls that are known by their start."""
    starts = {~crossing for _, _, crossing in wanted if crossing < 0}
    rows = calls[np.isin(calls["start_ns"], list(starts))] if starts else calls[:0]
    keys = zip(rows["lowered"].tolist(), rows["start_ns"].tolist(), strict=True)
    return dict(zip(keys, rows["crossing"].tolist(), strict=True))


def _known(
    call: _Call, place: Mapping[LoweredSite, int], crossings: _Crossings
) -> tuple[int, int, int] | None:
    """Return the numbers of site, crossing and batch element of a call; None: it has no row."""
    fact, element, crossing = call
    number = place.get(fact)
    if number is not None and crossing < 0:
        crossing = crossings.get((number, ~crossing), -1)
    return None if number is None or crossing < 0 else (number, crossing, element)


def value_words(value: np.ndarray | np.generic) -> str:
    """Format all values of an array that has few; empty for a larger one."""
    return _word(*_head(value)) if value.size <= ELEMENTS else ""


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
