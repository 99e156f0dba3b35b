"""Find an object again by the content of the arguments that it was made from."""

from __future__ import annotations

import enum
import types
from collections.abc import Hashable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

# Of these, each value is one object.
_BY_IDENTITY = (
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.NoneType,
    types.EllipsisType, type, enum.Enum,
)  # fmt: skip


def key_of(value: Any, place: str, whole: bool) -> Hashable:
    """Return what is equal for arguments of equal content.

    Numbers count with their type, and arrays with shape, dtype and bytes, so 0.0 and -0.0 differ,
    and NaN equals itself. Other arguments must be hashable; they count with their type and `==`.

    Args:
        value: an argument.
        place: which one it is, for errors.
        whole: keep the bytes of arrays, to compare them; else 128 bits of their hash are kept.

    Raises:
        TypeError: it is traced by JAX, or has no content that can be compared.
    """
    if np.ma.isMA(value):
        raise TypeError(f"{place} is a masked array. Pass its parts: x.data and x.mask.")
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{place} is traced by JAX ({value.aval.str_short()}), so its content is not known "
            "yet. Call the function of a host object inside a host function."
        )
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
        raise TypeError(f"{place} is {value.dtype}. Pass numbers: jax.random.key_data(key).")
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _of_array(np.asarray(value), place, whole)
    if isinstance(value, tuple | list):
        return type(value), tuple(key_of(one, place, whole) for one in value)
    if isinstance(value, dict):
        return dict, tuple(key_of(one, place, whole) for one in value.items())
    if isinstance(value, frozenset):
        return frozenset, frozenset(key_of(one, place, whole) for one in value)
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, complex):
        return type(value), value.real.hex(), value.imag.hex()
    try:
        hash(value)
        has_content = type(value).__eq__ is not object.__eq__ or isinstance(value, _BY_IDENTITY)
    except TypeError:
        has_content = False
    if not has_content:
        raise TypeError(
            f"{place} is of type {type(value).__name__}, which has no content to compare. Pass the "
            "arrays that it is made of (of a sparse matrix: data, indices, indptr), or a hashable "
            "value that defines ==."
        )
    return type(value), value


def _of_array(array: np.ndarray, place: str, whole: bool) -> Hashable:
    import xxhash  # here, so that the package can be imported where only JAX is installed

    if array.dtype.hasobject:
        raise TypeError(
            f"{place} is an array of Python objects, which have no content to "
            "compare. Pass numbers."
        )
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    content = flat.tobytes() if whole else xxhash.xxh3_128_digest(flat.data)
    return array.dtype, array.shape, content
