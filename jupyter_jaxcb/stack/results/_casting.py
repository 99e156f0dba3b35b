"""Convert numbers between dtypes, and find numbers that a conversion loses."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

MEANING = {"b": "boolean", "i": "integer", "f": "floating", "c": "complex"}
# Allowed conversions, (returned, declared). The others are never intended.
CONVERTS = {"bi", "bf", "bc", "ii", "if", "ic", "ff", "fc", "cc"}


@functools.cache
def kind_of(dtype: np.dtype) -> str | None:
    """Return the kind, as NumPy's b, i, f or c, of a dtype, also of ml_dtypes; None for others."""
    if dtype.kind in "bfc":
        return dtype.kind
    if dtype.kind in "iu":
        return "i"
    if dtype.fields is not None:
        return None
    for kind, info in (("f", ml_dtypes.finfo), ("i", ml_dtypes.iinfo)):
        try:
            info(dtype)
        except (ValueError, TypeError, KeyError):
            continue
        return kind
    return None


def may_be_of_jax(dtype: np.dtype) -> bool:
    """Return whether JAX has arrays of this dtype, with x64 on."""
    kind = kind_of(dtype)
    return kind is not None and dtype.itemsize <= (16 if kind == "c" else 8)  # no long doubles


def converted(array: Any, dtype: np.dtype) -> Any:
    """Return `array` as NumPy converts it, whether or not numbers are lost."""
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            return array.astype(dtype)
        except TypeError:  # between small dtypes of ml_dtypes, which fit into the wide dtype
            wide = np.int64 if kind_of(array.dtype) == "i" else np.float32
            return array.astype(wide).astype(dtype)


def find_lost(array: Any, cast: Any) -> Any:
    """Return the first number of `array` that is lost in `cast`; None if there is none.

    A floating-point number is lost if it became infinite or NaN, or no longer is; rounding is no
    loss. An integer is lost if it changed at all.
    """
    got, became = kind_of(array.dtype), kind_of(cast.dtype)
    if got in ("f", "c"):
        if _all(np.isfinite(cast)) and not _saturates(cast.dtype):
            return None
        lost = _is_lost(array.real, cast.real)
        if got == "c":
            lost |= _is_lost(array.imag, cast.imag)
    else:
        whole = array if array.dtype.kind in "iu" else array.astype(np.int64)
        lost = _is_outside(whole, cast.dtype) if became == "i" else _is_inexact(whole, cast.real)
    return None if _all(~lost) else array[lost].flat[0]


def _is_outside(whole: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = ml_dtypes.iinfo(dtype)
    return (whole < limits.min) | (whole > limits.max)


def _is_inexact(whole: np.ndarray, cast: np.ndarray) -> np.ndarray:
    """Compare as integers, and only within their range: outside of it C's cast is undefined."""
    back = cast.astype(np.float64)
    signed = whole.dtype.kind == "i"
    above = 2.0 ** (8 * whole.itemsize - signed)
    if _all(np.abs(back) < above):
        return back.astype(whole.dtype) != whole
    inside = (back >= (-above if signed else 0)) & (back < above)
    return ~inside | (np.where(inside, back, 0).astype(whole.dtype) != whole)


def _is_lost(part: np.ndarray, cast: np.ndarray) -> np.ndarray:
    lost = (np.isnan(part) != np.isnan(cast)) | (np.isinf(part) != np.isinf(cast))
    if _saturates(cast.dtype):
        lost |= np.abs(part) > float(ml_dtypes.finfo(cast.dtype).max)
    return lost


def _all(mask: Any) -> bool:
    """Return ``mask.all()``, which is slow for a single number."""
    return bool(mask.all() if mask.ndim else mask)


@functools.cache
def _saturates(dtype: np.dtype) -> bool:
    """Return whether `dtype` saturates: float4, for one, has neither infinity nor NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.full(1, np.inf, np.float32).astype(dtype)).all())
