"""Check one returned array against its declared shape and dtype, and convert it."""

from __future__ import annotations

import reprlib
from typing import Any

import jax
import numpy as np
from numpy.ma import MaskedArray

from ...recording import visible
from ..errors import describe
from ._casting import CONVERTS, MEANING, converted, find_lost, kind_of

_SHOWN_CHARACTERS = 60
_SHOWN_ELEMENTS = 3
_SHOWN_OF_AN_ERROR = 200
_SHOWN = reprlib.Repr()
_SHOWN.maxlevel, _SHOWN.maxother = 3, _SHOWN_CHARACTERS
_INSTEAD = {  # (returned, declared): what to write if the loss is intended
    "cf": ".real",
    "ci": ".real.astype({dtype!r})",
    "fi": ".astype({dtype!r})",
}


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
    name: str,
    path: str,
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

    Args:
        name: the name of the host function, for messages.
        path: the path of the leaf in the result, ``[0]["a"]``, for messages.
        value: the returned leaf.
        shape: the declared shape, with the batch axes of vmap in front.
        dtype: the declared dtype.
        may_lose: whether a conversion within a kind may lose information.
        batch: the batch axes in front of `shape`, for messages.

    Raises:
        ResultError: if the leaf does not match the declaration.
    """
    if type(value) is np.ndarray or isinstance(value, np.generic):
        array = np.asarray(value)
    else:
        array = _as_array(name + path, value, shape, dtype)
    if array.shape == shape and array.dtype == dtype:
        return array
    which = name + path
    if kind_of(array.dtype) is None:
        if isinstance(value, int) and not shape:
            return _beyond_64_bits(which, value, dtype, may_lose)
        raise ResultError(
            f"{which} returned {shown(value)}, which is not an array of numbers; expected "
            f"{array_words(shape, dtype)}. Return np.asarray(..., {dtype.name!r})."
        )
    if array.shape != shape:
        raise ResultError(*_other_shape(which, array.shape, shape, batch))
    if f"{kind_of(array.dtype)}{kind_of(dtype)}" not in CONVERTS:
        raise ResultError(*_other_kind(which, array, shape[len(batch) :], dtype))
    return _convert(which, array, dtype, may_lose)


def _other_shape(
    which: str, found: tuple[int, ...], shape: tuple[int, ...], batch: tuple[int, ...]
) -> tuple[str, str]:
    """Return the arguments of `ResultError`."""
    returned = f"{which} returned shape {found}, expected {shape}"
    if not batch:
        return f"{returned}. Return an array of shape {shape}", f"{found} as the result's shape"
    return (
        f"{returned}: batch {batch} + declared {shape[len(batch) :]}. Return one array for the "
        "whole batch, or use the vmap method 'sequential'."
    ), ""


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
    if array.size > _SHOWN_ELEMENTS:
        elements.append("...")
    return in_one_line(f"[{', '.join(elements)}]")


def _as_array(which: str, value: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Convert a value that is neither an array nor a scalar of NumPy.

    Raises:
        ResultError: if it is None, a container or a masked array, or NumPy cannot convert it.
    """
    why, declare, cause = "", "", None
    if value is None:
        instead = "Return the array (is a return statement missing?)"
        declare = "result=None"
    elif isinstance(value, (list, tuple, dict)):
        instead = _instead_of_container(value)
        declare = "this structure as the result"
    elif isinstance(value, MaskedArray):
        why = ", and JAX has no masked arrays"
        instead = "Return .filled(...), or .data and .mask as two results."
    else:
        try:
            return np.asarray(value)
        except Exception as error:
            text = in_one_line(describe(error), _SHOWN_OF_AN_ERROR)
            why, cause = f", and NumPy cannot convert it ({text})", error
            instead = "Return an array of numbers."
    raise ResultError(
        f"{which} returned {shown(value)}, expected {array_words(shape, dtype)}{why}. {instead}",
        declare,
    ) from cause


def _instead_of_container(value: Any) -> str:
    if not isinstance(value, dict):
        try:
            np.asarray(value)
        except ValueError:
            return "Its rows differ in length: pad them and return one array"
    return "Return one array (np.asarray(...))"


def _other_kind(
    which: str, array: np.ndarray, shape: tuple[int, ...], dtype: np.dtype
) -> tuple[str, str]:
    """Return the arguments of `ResultError`."""
    got, wanted = kind_of(array.dtype), kind_of(dtype)
    instead = _INSTEAD.get(f"{got}{wanted}", ".astype({dtype!r})").format(dtype=dtype.name)
    return (
        f"{which} returned {MEANING[got or 'f']} numbers ({array.dtype.name}, {_first(array)}), "
        f"expected {dtype.name}. Return {instead} if the loss is intended"
    ), declaration(array.dtype, shape)


def declaration(dtype: np.dtype, shape: tuple[int, ...] = ()) -> str:
    """Return the expression that declares an array of `dtype`, narrowed to 32 bits if x64 is off.

    It is in quotes, for ``result=`` and ``--result`` alike.
    """
    name = jax.dtypes.canonicalize_dtype(dtype).name
    module = "np" if hasattr(np, name) else "jnp"
    return f'"jax.ShapeDtypeStruct({shape}, {module}.{name})"'


def _convert(which: str, array: np.ndarray, dtype: np.dtype, may_lose: bool) -> np.ndarray:
    cast = converted(array, dtype)
    if may_lose:
        return cast
    lost = find_lost(array, cast)
    if lost is not None:
        raise _does_not_fit(which, str(lost), array.dtype.name, dtype)
    return cast


def _beyond_64_bits(which: str, value: int, dtype: np.dtype, may_lose: bool) -> np.ndarray:
    """Convert a Python integer that is too large for NumPy's integers, if `dtype` may hold it."""
    if may_lose and kind_of(dtype) == "i":
        return converted(np.asarray(value % 2**64, np.uint64), dtype)
    if kind_of(dtype) in ("f", "c"):
        try:
            cast = converted(np.asarray(float(value)), dtype)
        except OverflowError:
            cast = converted(np.asarray(np.inf if value > 0 else -np.inf), dtype)
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
