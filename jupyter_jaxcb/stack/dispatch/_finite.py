"""While recording, count calls whose results contain NaN or infinity."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...recording import LARGEST_CHECKED as LARGEST
from ...recording import LoweredSite, Recorder

FEW = 16  # elements; checked faster in Python than in NumPy

Finite = Callable[[Sequence[np.ndarray]], bool]
_FAST = (np.dtype(np.float32), np.dtype(np.float64))


def finite_checker(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[Any]) -> Finite | None:
    """Return a function that checks that all results of a call are finite.

    Results with more than `LARGEST` elements are not checked.

    Args:
        shapes: the shapes of one call's results.
        dtypes: their dtypes.

    Returns:
        The check; None if there is nothing to check.
    """
    places = [
        place
        for place, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
        if math.prod(shape) <= LARGEST and _can_be_infinite(np.dtype(dtype))
    ]
    if not places:
        return None
    if len(places) > 1:
        return lambda results: all(is_finite(results[place]) for place in places)
    (place,) = places
    if shapes[place] == () and np.dtype(dtypes[place]) in _FAST:
        if place == 0:
            return first_is_finite
        return lambda results: math.isfinite(results[place])  # type: ignore[arg-type]
    if np.dtype(dtypes[place]) in _FAST:
        if math.prod(shapes[place]) <= FEW:
            return lambda results: all(map(math.isfinite, results[place].ravel().tolist()))
    return lambda results: is_finite(results[place])


def first_is_finite(results: Sequence[Any]) -> bool:
    """Return whether the first result, a number, is finite."""
    return math.isfinite(results[0])


def is_finite(array: Any) -> bool:
    """Return whether no element is NaN or infinite; True for dtypes that have neither."""
    dtype = getattr(array, "dtype", None)
    return dtype is None or not _can_be_infinite(dtype) or bool(np.isfinite(array).all())


def _has_nan(array: Any) -> bool:
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        return isinstance(array, float) and math.isnan(array)
    return _can_be_infinite(dtype) and bool(np.isnan(array).any())


@functools.cache
def _can_be_infinite(dtype: Any) -> bool:
    if not isinstance(dtype, np.dtype) or dtype.kind in "biuOSUMm":
        return False
    try:
        np.isfinite(np.zeros(1, dtype))
    except TypeError:  # dtypes without isfinite, such as int4
        return False
    return True


def note_not_finite(
    recorder: Recorder,
    lowered: LoweredSite,
    start: int,
    operands: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
) -> None:
    """Record that a call returned NaN or infinity, and whether its arguments had some already.

    Args:
        recorder: the recorder.
        lowered: the site.
        start: when the call began, on the recorder's clock.
        operands: its arguments.
        results: its results.
    """
    passed_on = not all(map(is_finite, operands))
    values = recorder.values
    infinite = not any(map(_has_nan, results))
    values.not_finite(lowered, int(not passed_on), int(passed_on), int(infinite))
    values.mark(lowered, ~start, -1, passed_on)
    if not passed_on:
        values.take(lowered, ~start, -1, operands, results, group="not finite")


def note_elements_not_finite(
    recorder: Recorder,
    lowered: LoweredSite,
    crossing: int,
    elements: Iterable[tuple[int, Sequence[np.ndarray]]],
    results: Sequence[np.ndarray],
) -> None:
    """As `note_not_finite`, for all calls of one crossing; the arguments are of `record_values`."""
    wrong = np.zeros(len(results[0]), bool)
    nan = wrong.copy()
    for array in results:
        if _can_be_infinite(array.dtype):
            wrong |= ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
            nan |= np.isnan(array).reshape(len(array), -1).any(axis=1)
    values, counts = recorder.values, [0, 0]
    for row, (element, operands) in itertools.compress(enumerate(elements), wrong):
        passed_on = not all(map(is_finite, operands))
        counts[passed_on] += 1
        values.mark(lowered, crossing, element, passed_on)
        if not passed_on:
            own = [array[row] for array in results]
            values.take(lowered, crossing, element, operands, own, group="not finite")
    values.not_finite(lowered, counts[0], counts[1], int((wrong & ~nan).sum()))


def record_values(
    recorder: Recorder,
    lowered: LoweredSite,
    crossing: int,
    elements: Iterable[tuple[int, Sequence[np.ndarray]]],
    stacked: Sequence[np.ndarray],
) -> None:
    """Record sample values of a crossing's first calls, and note calls with non-finite results.

    Args:
        recorder: the recorder.
        lowered: the site.
        crossing: the number of the crossing.
        elements: batch element (-1 if there is none) and operands of each call.
        stacked: the stacked results, one row per call.
    """
    finite = all(map(is_finite, stacked))
    elements, again = (elements, ()) if finite else itertools.tee(elements)
    for row, (element, operands) in enumerate(elements):
        if lowered in recorder.values.full:
            break
        recorder.values.take(
            lowered, crossing, element, tuple(operands), [array[row] for array in stacked]
        )
    if not finite:
        note_elements_not_finite(recorder, lowered, crossing, again, stacked)
