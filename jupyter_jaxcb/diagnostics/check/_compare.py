"""Compare results, with tolerances for floating-point numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ...stack.results import kind_of

REPEATED = 0.9  # power of eps by which two calls with the same inputs may differ
SAME = 0.6  # and two ways to compute the same
ROUGH = 0.5  # and a value that a derivative rule computes in JAX
EXACT = 1.0


def difference(
    found: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    paths: Sequence[str],
    power: float = SAME,
    words: str = "{found}{at} instead of {expected}",
) -> str:
    """Describe the first element that differs; empty if there is none.

    Args:
        found: flat results.
        expected: the results to compare with.
        paths: the path of each result in its structure.
        power: floating-point numbers may differ by eps of the dtype to this power, relative to the
            largest one.
        words: the description; `at` is ``" at [1]"``, and empty for a scalar.
    """
    for x, y, path in zip(found, expected, paths, strict=True):
        wrong = ~close(x, y, power)
        if wrong.any():
            index = np.unravel_index(int(wrong.argmax()), x.shape)
            at = f"{path}{list(map(int, index))}" if index else path
            at = f" at {at}" if at else ""
            return words.format(found=str(x[index]), at=at, expected=str(y[index]))
    return ""


def close(x: np.ndarray, y: np.ndarray, power: float = SAME) -> np.ndarray:
    """Return which elements are equal, up to rounding errors of floating-point numbers."""
    with np.errstate(all="ignore"):  # infinities, and signaling NaN
        same = x == y
        if same.all() or kind_of(x.dtype) in ("b", "i"):
            return same
        eps = float(ml_dtypes.finfo(x.dtype).eps)
        x, y = wide(x), wide(y)
        sizes = np.abs(y)
        largest = sizes.max(initial=0.0, where=np.isfinite(sizes))
        return same | (np.abs(x - y) <= eps**power * largest) | (np.isnan(x) & np.isnan(y))


def wide(x: Any) -> np.ndarray:
    """Return an array in float64 or complex128."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
