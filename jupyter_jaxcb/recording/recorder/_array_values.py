"""Summarize an array of a sampled host call: its range, NaN and infinity, and a small picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._facts import ArrayValues

LARGEST = 1 << 16  # elements; larger arrays are not summarized
ROWS, COLUMNS = 8, 32  # of a picture, at most
_SHADES = "012345678"
_NOT_FINITE = "x"


def array_values(place: int, value: Any, shown: int) -> ArrayValues | None:
    """Return range and picture of an array of real numbers; None if all of it is shown anyway.

    Args:
        place: among the arguments and results of its call.
        value: the array.
        shown: the number of elements that are listed.
    """
    array = np.asarray(value)
    if not shown < array.size <= LARGEST or array.dtype.kind in "bcOSUMm":
        return None
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        return None
    finite = np.isfinite(numbers)
    nan = int(np.isnan(numbers).sum())
    inf = int(numbers.size - finite.sum()) - nan
    if not finite.any():
        return ArrayValues(place, "", "", nan, inf, _picture(numbers, finite, 0.0, 0.0))
    kept = array[finite]
    low, high = kept.min().item(), kept.max().item()
    picture = _picture(numbers, finite, float(low), float(high))
    return ArrayValues(place, f"{low:.6g}", f"{high:.6g}", nan, inf, picture)


def _picture(numbers: np.ndarray, finite: np.ndarray, low: float, high: float) -> str:
    wide = numbers.shape[-1]
    # Scaled first: a sum of large numbers would overflow, and so would their range.
    with np.errstate(all="ignore"):
        scaled = (numbers / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)
    scaled = np.where(finite, scaled, 0.0).reshape(-1, wide)
    sums = _blocks(scaled)
    bad = _blocks((~finite).reshape(-1, wide).astype(np.float64)) > 0
    shades = np.rint(sums / _blocks(np.ones_like(scaled)) * (len(_SHADES) - 1)).astype(int)
    rows = zip(shades.tolist(), bad.tolist(), strict=True)
    return " ".join(
        "".join(_NOT_FINITE if x else _SHADES[shade] for shade, x in zip(*row, strict=True))
        for row in rows
    )


def _blocks(numbers: np.ndarray) -> np.ndarray:
    """Sum up the parts of a matrix that become the cells of a picture."""
    for axis, most in enumerate((ROWS, COLUMNS)):
        size = numbers.shape[axis]
        count = min(size, most)
        numbers = np.add.reduceat(numbers, np.arange(count) * size // count, axis=axis)
    return numbers
