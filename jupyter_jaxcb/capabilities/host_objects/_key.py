"""Find an object again by the content of the arguments that it was made from."""

from __future__ import annotations

import enum
import types
from collections.abc import Hashable, Mapping
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


class Whole:
    """The content of an array, which `==` compares byte by byte."""

    __slots__ = ("_data", "_hash")

    def __init__(self, data: bytes) -> None:
        import xxhash

        self._data, self._hash = data, xxhash.xxh3_64_intdigest(data)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Whole) and self._data == other._data


def key_of(
    name: str, arguments: tuple[Any, ...], named: Mapping[str, Any], whole: bool
) -> Hashable:
    """Return what is equal for arguments of equal content.

    Numbers count with their type, and arrays with shape, dtype and bytes, so 0.0 and -0.0 differ,
    and NaN equals itself. Other arguments must be hashable; they count with their type and `==`.

    Args:
        name: the function's name, for errors.
        arguments: the positional arguments.
        named: the keyword arguments.
        whole: keep the bytes of arrays, to compare them; else 128 bits of their hash are kept.

    Raises:
        TypeError: an argument is traced by JAX, or has no content that can be compared.
    """
    found = [_content(one, f"argument {n} of {name}", whole) for n, one in enumerate(arguments)]
    return tuple(found), tuple(
        (key, _content(named[key], f"argument {key} of {name}", whole)) for key in sorted(named)
    )


def _content(value: Any, place: str, whole: bool) -> Hashable:
    if np.ma.isMA(value):
        raise TypeError(f"{place} is a masked array. Pass its parts: x.data and x.mask.")
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value), place, whole)
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{place} is traced by JAX ({value.aval.str_short()}), so its content is not known "
            "yet. Call the function of a host object inside a host function."
        )
    if isinstance(value, jax.Array):
        if jnp.issubdtype(value.dtype, jax.dtypes.extended):
            raise TypeError(f"{place} is {value.dtype}. Pass numbers: jax.random.key_data(key).")
        return _array(np.asarray(value), place, whole)
    if isinstance(value, tuple | list):
        return type(value), tuple(_content(one, place, whole) for one in value)
    if isinstance(value, dict):
        return dict, tuple(
            (_content(key, place, whole), _content(one, place, whole)) for key, one in value.items()
        )
    if isinstance(value, frozenset):
        return frozenset, frozenset(_content(one, place, whole) for one in value)
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, complex):
        return type(value), value.real.hex(), value.imag.hex()
    return type(value), _hashable(value, place)


def _array(array: np.ndarray, place: str, whole: bool) -> Hashable:
    import xxhash  # here, so that the package can be imported where only JAX is installed

    if array.dtype.hasobject:
        raise TypeError(
            f"{place} is an array of Python objects, which have no content to "
            "compare. Pass numbers."
        )
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    content = Whole(flat.tobytes()) if whole else xxhash.xxh3_128_digest(flat.data)
    return array.dtype, array.shape, content


def _hashable(value: Any, place: str) -> Hashable:
    compared = type(value).__eq__ is not object.__eq__ or isinstance(value, _BY_IDENTITY)
    try:
        hash(value)
    except TypeError:
        compared = False
    if not compared:
        raise TypeError(
            f"{place} is of type {type(value).__name__}, which has no content to compare. Pass the "
            "arrays that it is made of (of a sparse matrix: data, indices, indptr), or a hashable "
            "value that defines ==."
        )
    return value
