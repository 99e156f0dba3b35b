"""Compare results, with tolerances for floating-point numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ...stack.results import kind_of

REPEATED = 0.9  # power of eps that two calls with the same inputs may differ by


class Difference(NamedTuple):
    """The first element in which two results differ."""

    found: str
    at: str  # " at [1]"; empty for a scalar
    expected: str

    def __str__(self) -> str:
        return f"{self.found}{self.at} instead of {self.expected}"


def difference(
    found: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    paths: Sequence[str],
    power: float = 0.6,
) -> Difference | None:
    """Find the first element that differs.

    Args:
        found: flat results.
        expected: the results to compare with.
        paths: the path of each result in its structure.
        power: floating-point numbers may differ by eps of the dtype to this power.

    Returns:
        The difference; None if there is none.
    """
    for one, other, path in zip(found, expected, paths, strict=True):
        first = _first_difference(one, other, power)
        if first is not None:
            place = np.unravel_index(first, one.shape)
            at = f"{path}{list(map(int, place))}" if place else path
            where = f" at {at}" if at else ""
            return Difference(str(one[place]), where, str(other[place]))
    return None


def differing_rows(
    found: Sequence[np.ndarray], expected: Sequence[np.ndarray], power: float = 0.6
) -> list[int]:
    """Return the rows, along the first axes, in which results differ; see `difference`."""
    wrong: set[int] = set()
    for one, other in zip(found, expected, strict=True):
        differs = ~close(one, other, power, _largest(other))
        wrong.update(np.flatnonzero(differs.reshape(len(one), -1).any(axis=1)).tolist())
    return sorted(wrong)


def _first_difference(one: np.ndarray, other: np.ndarray, power: float) -> int | None:
    """Return the flat index of the first difference; blockwise, to save memory."""
    one, other = one.reshape(-1), other.reshape(-1)
    blocks = [slice(begin, begin + _BLOCK) for begin in range(0, one.size, _BLOCK)]
    largest = max((_largest(other[block]) for block in blocks), default=0.0)
    for block in blocks:
        wrong = ~close(one[block], other[block], power, largest)
        if wrong.any():
            return block.start + int(wrong.argmax())
    return None


_BLOCK = 1 << 16  # elements


def _is_exact(dtype: np.dtype) -> bool:
    return kind_of(dtype) in ("b", "i")


def wide(x: Any) -> np.ndarray:
    """Return an array in float64 or complex128."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _largest(array: np.ndarray) -> float:
    """Return the largest finite absolute value."""
    if _is_exact(array.dtype):
        return 0.0
    with np.errstate(all="ignore"):  # signaling NaN
        sizes = np.abs(wide(array))
    return float(sizes.max(initial=0.0, where=np.isfinite(sizes)))


def close(one: np.ndarray, other: np.ndarray, power: float, largest: float) -> np.ndarray:
    """Return which elements are equal, up to rounding errors relative to `largest`."""
    if _is_exact(one.dtype):
        return one == other
    eps = float(ml_dtypes.finfo(one.dtype).eps)
    with np.errstate(all="ignore"):
        one, other = wide(one), wide(other)
        near = np.abs(one - other) <= eps**power * largest
    return near | (one == other) | (np.isnan(one) & np.isnan(other))
