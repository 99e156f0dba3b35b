"""Numbers of one dtype as numbers of another: which may be converted, and which would be lost."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

MEANING = {"b": "boolean", "i": "integer", "f": "floating", "c": "complex"}
# (came, declared): conversions that may be exact. Not in here: those that never are meant.
CONVERTS = {"bi", "bf", "bc", "ii", "if", "ic", "ff", "fc", "cc"}


@functools.cache
def kind_of(dtype: np.dtype) -> str | None:
    """b, i, f, c as numpy's kinds, with ml_dtypes' floats and small integers; None: no number."""
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
    """Whether JAX has arrays of it, with x64 on."""
    kind = kind_of(dtype)
    return kind is not None and dtype.itemsize <= (16 if kind == "c" else 8)  # no long doubles


def converted(array: Any, dtype: np.dtype) -> Any:
    """`array` as numpy converts it, right or wrong."""
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            return array.astype(dtype)
        except TypeError:  # between small dtypes of ml_dtypes; these are exact in the larger ones
            wide = np.int64 if kind_of(array.dtype) == "i" else np.float32
            return array.astype(wide).astype(dtype)


def find_lost(array: Any, cast: Any) -> Any:
    """The first of the numbers that `cast`, made of `array`, does not have; None: it has all.

    Between floating numbers only what became infinite or NaN, or stopped to be, is lost: the others
    are rounded. An integer is lost if it is not exactly the same.
    """
    came, became = kind_of(array.dtype), kind_of(cast.dtype)
    if came in ("f", "c"):
        if _all(np.isfinite(cast)) and not _saturates(cast.dtype):
            return None
        lost = _is_lost(array.real, cast.real)
        if came == "c":
            lost |= _is_lost(array.imag, cast.imag)
    else:
        whole = array if array.dtype.kind in "iu" else array.astype(np.int64)
        lost = _is_outside(whole, cast.dtype) if became == "i" else _is_inexact(whole, cast.real)
    return None if _all(~lost) else array[lost].flat[0]


def _is_outside(whole: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = ml_dtypes.iinfo(dtype)
    return (whole < limits.min) | (whole > limits.max)


def _is_inexact(whole: np.ndarray, cast: np.ndarray) -> np.ndarray:
    """Compared as integers again, and only where they are in range: C leaves open what is not."""
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
    """As ``mask.all()``, which is slow for one number."""
    return bool(mask.all() if mask.ndim else mask)


@functools.cache
def _saturates(dtype: np.dtype) -> bool:
    """Whether it has neither infinity nor NaN, as float4 has not: what is too large is cut."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.full(1, np.inf, np.float32).astype(dtype)).all())
