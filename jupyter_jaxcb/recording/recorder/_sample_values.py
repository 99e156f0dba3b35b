"""Collect sample values of host calls, and which of them returned NaN or infinity."""

from __future__ import annotations

import collections
import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .._facts import LoweredSite, NotFiniteCall, SampleValues, Site
from ._log import Counts

SAMPLES = 3  # calls kept for each site and shard, in each cell or block
ELEMENTS = 6  # elements kept of an array
LARGEST = 1 << 16  # elements of an array whose range is kept too
KEPT = 1_000  # sampled calls kept in total
MARKED = 10_000  # calls with non-finite results that are kept in total

# The shape, copies of the first elements, and words about all of them, never the user's array.
_Head = tuple[tuple[int, ...], np.ndarray, str]
Group = Literal["first", "failed", "not finite"]  # why a call is sampled
_Whose = tuple[Site, int | None, Group]  # site, shard: `SAMPLES` calls are kept of each
# Site and batch element of a call, and the number of its crossing; ~start_ns if that is not known.
_Call = tuple[LoweredSite, int, int]
_Crossings = Mapping[tuple[int, int], int]  # by site and start


class Values:
    """The sample values of a recorder; thread-safe.

    Args:
        counts: gets the numbers of calls with NaN or infinity.
        wanted: whether to keep sample values.

    Attributes:
        full: the sites that need no more sample values; checked on every host call.
    """

    def __init__(self, counts: Counts, wanted: bool = True) -> None:
        self._counts = counts
        self._wanted = wanted
        self._kept: list[tuple[_Call, list[_Head], list[_Head], Group]] = []
        self._taken: dict[_Whose, int] = {}
        self._marked: list[tuple[_Call, bool]] = []  # with non-finite results; passed on?
        self._lock = threading.Lock()
        self.full: set[LoweredSite] = set()

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
            if group == "first" and (count >= SAMPLES or full or not self._wanted):
                self.full.add(lowered)
            if self._wanted and count <= SAMPLES and not full:
                heads = [*map(_head, operands)], [*map(_head, results)]
                self._kept.append(((lowered, element, crossing), *heads, group))

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
        self._counts.add(lowered, produced=produced, passed_on=passed_on, infinite=infinite)

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
        for call, operands, results, group in kept:
            fact = call[0]
            whose = fact.site, fact.shard, group
            taken[whose] += 1  # a nested block may have kept more
            known = _known(call, place, crossings)
            if known and known not in found and taken[whose] <= SAMPLES:
                words = _words(operands), _words(results)
                found[known] = SampleValues(*known, *words, group == "failed")
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
    return array.shape, array.flat[:ELEMENTS], _range(array)


def _range(array: np.ndarray) -> str:
    """Return ``(0 to 14, 3 NaN)`` for an array of real numbers of which not all are listed."""
    if not ELEMENTS < array.size <= LARGEST or array.dtype.kind in "bcOSUMm":
        return ""
    try:
        numbers = array.astype(np.float64)  # NumPy cannot compare all dtypes of ml_dtypes
    except (TypeError, ValueError):
        return ""
    finite, nan = array[np.isfinite(numbers)], np.count_nonzero(np.isnan(numbers))
    words = []
    if finite.size:
        words.append(f"{_element(finite.min().item())} to {_element(finite.max().item())}")
    if nan:
        words.append(f"{nan:,} NaN")
    if infinite := array.size - finite.size - nan:
        words.append(f"{infinite:,} infinite")
    return f"({', '.join(words)})"


def _words(heads: Sequence[_Head]) -> tuple[str, ...]:
    return tuple(itertools.starmap(_word, heads))


def _word(shape: tuple[int, ...], head: np.ndarray, about: str) -> str:
    """Format as ``0.25`` or ``[0, 0.1, …] (0 to 14)``: row-major, without the shape."""
    elements = [_element(value) for value in head.tolist()]
    if not shape:
        return elements[0]
    more = ["…"] if np.prod(shape, dtype=np.int64) > len(elements) else []
    return f"[{', '.join([*elements, *more])}] {about}".rstrip()


def _element(value: Any) -> str:
    if isinstance(value, complex):
        return f"{value:.4g}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
