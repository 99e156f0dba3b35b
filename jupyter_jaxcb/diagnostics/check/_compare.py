"""Compare results, with tolerances for floating-point numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ...stack.results import kind_of

REPEATED = 0.9  # power of eps that two calls with the same inputs may differ by
SAME = 0.6  # and two ways to compute the same


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
    power: float = SAME,
) -> Difference | None:
    """Return the first element that differs; None if there is none.

    Args:
        found: flat results.
        expected: the results to compare with.
        paths: the path of each result in its structure.
        power: floating-point numbers may differ by eps of the dtype to this power, relative to the
            largest one.
    """
    for one, other, path in zip(found, expected, paths, strict=True):
        wrong = ~close(one, other, power)
        if wrong.any():
            place = np.unravel_index(int(wrong.argmax()), one.shape)
            at = f"{path}{list(map(int, place))}" if place else path
            return Difference(str(one[place]), f" at {at}" if at else "", str(other[place]))
    return None


def close(one: np.ndarray, other: np.ndarray, power: float = SAME) -> np.ndarray:
    """Return which elements are equal, up to rounding errors of floating-point numbers."""
    with np.errstate(all="ignore"):  # infinities, and signaling NaN
        same = one == other
        if same.all() or kind_of(one.dtype) in ("b", "i"):
            return same
        eps = float(ml_dtypes.finfo(one.dtype).eps)
        one, other = wide(one), wide(other)
        sizes = np.abs(other)
        largest = sizes.max(initial=0.0, where=np.isfinite(sizes))
        near = np.abs(one - other) <= eps**power * largest
        return near | same | (np.isnan(one) & np.isnan(other))


def wide(x: Any) -> np.ndarray:
    """Return an array in float64 or complex128."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
