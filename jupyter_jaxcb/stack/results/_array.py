"""One array of an answer against its declared shape and dtype."""

from __future__ import annotations

import reprlib
from typing import Any

import jax
import numpy as np
from numpy.ma import MaskedArray

from ..core import describe
from ._casting import CONVERTS, MEANING, converted, find_lost, kind_of

_SHOWN_CHARACTERS = 60
_SHOWN_ELEMENTS = 3
_SHOWN_OF_AN_ERROR = 200
_SHOWN = reprlib.Repr()
_SHOWN.maxlevel, _SHOWN.maxother = 3, _SHOWN_CHARACTERS
_INSTEAD = {  # (came, declared): what to write if the loss is meant
    "cf": ".real",
    "ci": ".real.astype({dtype!r})",
    "fi": ".astype({dtype!r})",
}


class ResultError(ValueError):
    """A host function's answer is not what was declared."""


def settle(
    name: str,
    path: str,
    value: Any,
    shape: tuple[int, ...],
    dtype: np.dtype,
    may_lose: bool = False,
    batch: tuple[int, ...] = (),
) -> np.ndarray:
    """One leaf of an answer as an array of exactly the declared shape and dtype.

    A floating answer is rounded to the declared width, an integer that fits is converted; what
    would lose more (wrap around, become infinite, drop the imaginary part or the fraction)
    raises, unless it `may_lose` within its kind.

    Raises:
        ResultError: it does not fit; names the leaf, what was declared and what came.
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
            f"{which} answered with {shown(value)}, which is no array of numbers, where "
            f"{array_words(shape, dtype)} was declared. Return numbers, as np.asarray(..., "
            f"{dtype.name!r}) makes them."
        )
    if array.shape != shape:
        raise ResultError(_other_shape(which, array.shape, shape, batch))
    if f"{kind_of(array.dtype)}{kind_of(dtype)}" not in CONVERTS:
        raise ResultError(_other_kind(which, array, shape[len(batch) :], dtype))
    return _convert(which, array, dtype, may_lose)


def _other_shape(
    which: str, found: tuple[int, ...], shape: tuple[int, ...], batch: tuple[int, ...]
) -> str:
    said = f"{which} answered with shape {found} where {shape}"
    if not batch:
        return (
            f"{said} was declared. Return an array of shape {shape}, or declare {found} as the "
            "result's shape."
        )
    return (
        f"{said} has to be: {shape[len(batch) :]} was declared, and vmap handed over a batch "
        f"{batch} in one call. Return an array of shape {shape}, or register it with "
        "'sequential' as its vmap method."
    )


def array_words(shape: tuple[int, ...], dtype: np.dtype) -> str:
    """``an array float32[3]``, as messages name what was declared."""
    return f"an array {dtype.name}[{', '.join(map(str, shape))}]"


def shown(value: Any) -> str:
    """`value` in a few words of one line."""
    if isinstance(value, MaskedArray):
        return f"a masked array {value.dtype.name}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        dtype = value.dtype if value.dtype.fields else value.dtype.name
        return f"an array {dtype}{list(value.shape)} ({_first(value)})"
    return in_one_line(_SHOWN.repr(value))


def in_one_line(text: str, most: int = _SHOWN_CHARACTERS) -> str:
    """`text` without line breaks, and cut after `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _first(array: np.ndarray) -> str:
    """The first few elements."""
    elements = [_SHOWN.repr(x) for x in array.reshape(-1)[:_SHOWN_ELEMENTS].tolist()]
    if not array.shape:
        return in_one_line(elements[0])
    if array.size > _SHOWN_ELEMENTS:
        elements.append("...")
    return in_one_line(f"[{', '.join(elements)}]")


def _as_array(which: str, value: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """What is neither an array nor a number of numpy's."""
    why, cause = "", None
    if value is None:
        instead = (
            "Return the array (a function that ends without return answers None), or declare None "
            "as the result."
        )
    elif isinstance(value, (list, tuple, dict)):
        instead = _instead_of_container(value)
    elif isinstance(value, MaskedArray):
        why = ", and JAX has no place for its mask"
        instead = "Return .filled(...), or .data and .mask as two results."
    else:
        try:
            return np.asarray(value)
        except Exception as error:
            said = in_one_line(describe(error), _SHOWN_OF_AN_ERROR)
            why, cause = f", and numpy makes no array of it ({said})", error
            instead = "Return an array of numbers."
    raise ResultError(
        f"{which} answered with {shown(value)} where {array_words(shape, dtype)} was declared{why}."
        f" {instead}"
    ) from cause


def _instead_of_container(value: Any) -> str:
    if not isinstance(value, dict):
        try:
            np.asarray(value)
        except ValueError:
            return (
                "Its rows differ in length: pad them to one length and return one array, or "
                "declare the structure as result."
            )
    return "Return one array (np.asarray(...)), or declare the structure as result."


def _other_kind(which: str, array: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> str:
    came, wanted = kind_of(array.dtype), kind_of(dtype)
    instead = _INSTEAD.get(f"{came}{wanted}", ".astype({dtype!r})").format(dtype=dtype.name)
    return (
        f"{which} answered with {MEANING[came or 'f']} numbers ({array.dtype.name}, "
        f"{_first(array)}) where {dtype.name} was declared. Return {instead} if that is meant, "
        f"or declare {declaration(array.dtype, shape)}."
    )


def declaration(dtype: np.dtype, shape: tuple[int, ...] = ()) -> str:
    """What declares an array of the dtype that JAX has for `dtype`: wide ones need x64.

    In quotes: an expression, also behind ``--result``.
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
    """A Python integer that no integer of numpy's holds; a floating number may."""
    if kind_of(dtype) in ("f", "c"):
        try:
            cast = converted(np.asarray(float(value)), dtype)
        except OverflowError:
            cast = converted(np.asarray(np.inf if value > 0 else -np.inf), dtype)
        if may_lose or float(cast.real) == value:
            return cast
    text = str(value) if value.bit_length() < 128 else f"one of {value.bit_length()} bits"
    raise _does_not_fit(which, text, "int", dtype)


def _does_not_fit(which: str, value: str, came: str, dtype: np.dtype) -> ResultError:
    return ResultError(
        f"{which} answered with {value} ({came}), which does not fit the declared "
        f"{dtype.name}. Declare a wider dtype (64-bit ones need jax_enable_x64), or register "
        "with cast=True if that is meant."
    )
