"""Convert one returned array to its declared shape and dtype, or say what to return instead."""

from __future__ import annotations

import functools
import reprlib
from typing import Any

import jax
import ml_dtypes
import numpy as np
from numpy.ma import MaskedArray

from ...recording import visible
from ..errors import describe

MEANING = {"b": "boolean", "i": "integer", "f": "floating", "c": "complex"}
# Allowed conversions, (returned, declared). The others are never intended.
CONVERTS = {"bi", "bf", "bc", "ii", "if", "ic", "ff", "fc", "cc"}
_INSTEAD = {  # (returned, declared): what to write if the loss is intended
    "cf": ".real",
    "ci": ".real.astype({dtype!r})",
    "fi": ".astype({dtype!r})",
}
_NARROW = {  # what JAX makes of dtypes while x64 is off
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in (("i8", "i4"), ("u8", "u4"), ("f8", "f4"), ("c16", "c8"))
}
_SHOWN_CHARACTERS = 60
_SHOWN_ELEMENTS = 3
_SHOWN = reprlib.Repr()
_SHOWN.maxlevel, _SHOWN.maxother = 3, _SHOWN_CHARACTERS


class ResultError(ValueError):
    """The result of a host function does not match its declaration.

    Args:
        text: what was returned, what was expected, and what to return instead.
        declare: what could be declared instead; empty: nothing.
    """

    def __init__(self, text: str, declare: str = "") -> None:
        super().__init__(f"{text}, or declare {declare}." if declare else text)
        self._text, self._declare = text, declare

    def undeclared(self, because: str) -> ResultError:
        """Return the error for a result that its user did not declare; `because`: who did."""
        return ResultError(f"{self._text}{'.' if self._declare else ''} {because}")


def convert_leaf(
    which: str,
    value: Any,
    shape: tuple[int, ...],
    dtype: np.dtype,
    may_lose: bool = False,
    batch: tuple[int, ...] = (),
) -> np.ndarray:
    """Convert one leaf of a result to an array of exactly the declared shape and dtype.

    Floating-point numbers are rounded to the declared width, and integers that fit are converted.
    Anything that loses more (wraps around, becomes infinite, drops a fraction or an imaginary part)
    raises; `may_lose` allows losses within a kind.

    For messages, `which` is the host function and the path of the leaf, ``f[0]["a"]``, and `batch`
    the axes of vmap, with which `shape` begins.

    Raises:
        ResultError: if the leaf does not match the declaration.
    """
    if type(value) is np.ndarray or isinstance(value, np.generic):
        array = np.asarray(value)
    else:
        array = _as_array(which, value, shape, dtype)
    if array.shape == shape and array.dtype == dtype:
        return array
    kind, wanted = kind_of(array.dtype), kind_of(dtype)
    if kind is None:
        if isinstance(value, int) and not shape:
            return _beyond_64_bits(which, value, dtype, may_lose)
        raise ResultError(
            f"{which} returned {shown(value)}, which is not an array of numbers; expected "
            f"{array_words(shape, dtype)}. Return np.asarray(..., {dtype.name!r})."
        )
    if array.shape != shape:
        returned = f"{which} returned shape {array.shape}, expected {shape}"
        if batch:
            raise ResultError(
                f"{returned}: batch {batch} + declared {shape[len(batch) :]}. Return one array for "
                "the whole batch, or use the vmap method 'sequential'."
            )
        raise ResultError(
            f"{returned}. Return an array of shape {shape}", f"{array.shape} as the result's shape"
        )
    if f"{kind}{wanted}" not in CONVERTS:
        instead = _INSTEAD.get(f"{kind}{wanted}", ".astype({dtype!r})").format(dtype=dtype.name)
        raise ResultError(
            f"{which} returned {MEANING[kind]} numbers ({array.dtype.name}, {_first(array)}), "
            f"expected {dtype.name}. Return {instead} if the loss is intended",
            _declaration(array.dtype, shape[len(batch) :]),
        )
    cast = converted(array, dtype)
    if not may_lose:
        lost = find_lost(array, cast)
        if lost is not None:
            raise _does_not_fit(which, str(lost), array.dtype.name, dtype)
    return cast


def exact_leaf(
    which: str, value: Any, shape: tuple[int, ...], dtype: np.dtype, x64: bool
) -> np.ndarray:
    """As `convert_leaf`, but convert nothing, except from 64 bits while `x64` is off."""
    try:
        array = np.asarray(value)
    except Exception as error:
        raise ResultError(
            f"{which} returned {shown(value)}, which is not an array: {describe(error)}"
        ) from None
    held = array.dtype if x64 else _NARROW.get(array.dtype, array.dtype)
    if held != dtype or array.shape != shape:
        returned = array_words(array.shape, held) if kind_of(held) else shown(value)
        raise ResultError(
            f"{which} returned {returned}, expected exactly {array_words(shape, dtype)}. Return "
            f"np.asarray(..., {dtype.name!r}) of that shape, or declare another result_shape."
        )
    if array.dtype == dtype:
        return array
    cast = converted(array, dtype)  # numbers become infinite, as in JAX's host_callback
    lost = find_lost(array, cast) if dtype.kind in "iu" else None
    if lost is not None:
        raise ResultError(
            f"{which} returned {lost} ({array.dtype.name}), which does not fit {dtype.name}: JAX "
            "has no 64-bit numbers while jax_enable_x64 is off. Enable x64, or return a smaller "
            "number."
        )
    return cast


def _as_array(which: str, value: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Convert a value that is neither an array nor a scalar of NumPy.

    Raises:
        ResultError: if it is None, a container or a masked array, or NumPy cannot convert it.
    """
    why, declare, cause = "", "", None
    if value is None:
        instead, declare = "Return the array (is a return statement missing?)", "result=None"
    elif isinstance(value, (list, tuple, dict)):
        instead, declare = "Return one array (np.asarray(...))", "this structure as the result"
        try:
            np.asarray(value)
        except ValueError:
            instead = "Its rows differ in length: pad them and return one array"
    elif isinstance(value, MaskedArray):
        why = ", and JAX has no masked arrays"
        instead = "Return .filled(...), or .data and .mask as two results."
    else:
        try:
            return np.asarray(value)
        except Exception as error:
            cause = error
            why = f", and NumPy cannot convert it ({in_one_line(describe(error), 200)})"
            instead = "Return an array of numbers."
    raise ResultError(
        f"{which} returned {shown(value)}, expected {array_words(shape, dtype)}{why}. {instead}",
        declare,
    ) from cause


def _beyond_64_bits(which: str, value: int, dtype: np.dtype, may_lose: bool) -> np.ndarray:
    """Convert a Python integer that is too large for NumPy's integers, if `dtype` may hold it."""
    kind = kind_of(dtype)
    if may_lose and kind == "i":
        return converted(np.asarray(value % 2**64, np.uint64), dtype)
    if kind in ("f", "c"):
        try:
            number = float(value)
        except OverflowError:
            number = np.inf if value > 0 else -np.inf
        cast = converted(np.asarray(number), dtype)
        if may_lose or float(cast.real) == value:
            return cast
    text = str(value) if value.bit_length() < 128 else f"one of {value.bit_length()} bits"
    raise _does_not_fit(which, text, "int", dtype)


def _does_not_fit(which: str, value: str, got: str, dtype: np.dtype) -> ResultError:
    return ResultError(
        f"{which} returned {value} ({got}), which does not fit the declared {dtype.name}. Declare "
        "a wider dtype (64-bit ones need jax_enable_x64), or register with cast=True to convert "
        "anyway."
    )


def _declaration(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    """Return the expression that declares an array of `dtype`, as JAX holds it.

    It is in quotes, for ``result=`` and ``--result`` alike.
    """
    name = jax.dtypes.canonicalize_dtype(dtype).name
    return f'"jax.ShapeDtypeStruct({shape}, {"np" if hasattr(np, name) else "jnp"}.{name})"'


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
    if kind_of(array.dtype) in ("f", "c"):
        if _all(np.isfinite(cast)) and not _saturates(cast.dtype):
            return None
        lost = _is_lost(array.real, cast.real)
        if array.dtype.kind == "c":
            lost |= _is_lost(array.imag, cast.imag)
    else:
        whole = array if array.dtype.kind in "iu" else array.astype(np.int64)
        if kind_of(cast.dtype) == "i":
            limits = ml_dtypes.iinfo(cast.dtype)
            lost = (whole < limits.min) | (whole > limits.max)
        else:  # compared as integers, within their range: outside of it C's cast is undefined
            back, signed = cast.real.astype(np.float64), whole.dtype.kind == "i"
            above = 2.0 ** (8 * whole.itemsize - signed)
            outside = ~((back >= (-above if signed else 0)) & (back < above))
            if not _all(~outside):
                back = np.where(outside, 0, back)
            lost = outside | (back.astype(whole.dtype) != whole)
    return None if _all(~lost) else array[lost].flat[0]


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


def array_words(shape: tuple[int, ...], dtype: np.dtype) -> str:
    """Return ``an array float32[3]``, for messages."""
    return f"an array {dtype.name}[{', '.join(map(str, shape))}]"


def shown(value: Any) -> str:
    """Return a short text for `value`, on one line."""
    if issubclass(type(value), MaskedArray):  # the `__class__` of a value may raise
        return f"a masked array {value.dtype.name}{list(value.shape)}"
    if issubclass(type(value), np.ndarray):
        dtype = value.dtype if value.dtype.fields else value.dtype.name
        return f"an array {dtype}{list(value.shape)} ({_first(value)})"
    return in_one_line(_SHOWN.repr(value))


def in_one_line(text: str, most: int = _SHOWN_CHARACTERS) -> str:
    """Return `text` without line breaks, cut after `most` characters."""
    text = visible(" ".join(text.split()))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _first(array: np.ndarray) -> str:
    """Return the first few elements, as text."""
    elements = [_SHOWN.repr(x) for x in array.reshape(-1)[:_SHOWN_ELEMENTS].tolist()]
    if not array.shape:
        return in_one_line(elements[0])
    more = ["..."] if array.size > _SHOWN_ELEMENTS else []
    return in_one_line(f"[{', '.join(elements + more)}]")
