"""The content of arguments, by which an object is found again, and the memory of objects."""

from __future__ import annotations

import enum
import os
import re
import sys
import types
from collections.abc import Hashable
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}
_UNITS |= {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)}
_SHARE = 8  # of the machine's memory, for each host object
_UNKNOWN_MACHINE = 8 * 1024**3
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
        import xxhash  # here, so that the package can be imported where only JAX is installed

        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(
                f"{place} is an array of Python objects, which have no content to "
                "compare. Pass numbers."
            )
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        content = flat.tobytes() if whole else xxhash.xxh3_128_digest(flat.data)
        return array.dtype, array.shape, content
    if isinstance(value, dict):
        return dict, key_of(tuple(value.items()), place, whole)
    if isinstance(value, tuple | list | frozenset):
        gathered = frozenset if isinstance(value, frozenset) else tuple
        return type(value), gathered(key_of(entry, place, whole) for entry in value)
    if isinstance(value, float | complex):
        return type(value), float.hex(value.real), float.hex(value.imag)
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


def default_limit() -> int:
    """Return an eighth of the machine's memory, in bytes."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        machine = _UNKNOWN_MACHINE
    return machine // _SHARE


def parsed(size: int | str) -> int:
    """Return a size in bytes: ``1_000_000``, ``"1 GB"``, ``"512 MiB"``.

    Raises:
        ValueError: it is not a size above zero.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(size))
    unit = match and _UNITS.get(match[2].upper())
    number = float(match[1]) * unit if match and unit else 0
    if isinstance(size, bool) or number < 1:
        raise ValueError(
            f'max_bytes={size!r} is not a size. Pass a number of bytes, or a string such as "1 GB" '
            'or "512 MiB".'
        )
    return int(number)


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where it is not known."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0


def visible_bytes(value: Any, seen: set[int] | None = None) -> int | None:
    """Return the memory of arrays, containers and attributes; None if none of these was found."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    nbytes = getattr(value, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    if isinstance(value, str | bytes | bytearray | int | float | complex):
        return sys.getsizeof(value)
    attributes = getattr(value, "__dict__", None)
    if isinstance(value, dict):
        parts = [*value, *value.values()]
    elif isinstance(value, tuple | list | set | frozenset):
        parts = [*value]
    elif isinstance(value, type) or callable(value) or not isinstance(attributes, dict):
        return None
    else:
        parts = [*attributes.values()]
    sizes = [visible_bytes(part, seen) for part in parts]
    known = [nbytes for nbytes in sizes if nbytes is not None]
    return sys.getsizeof(value) + sum(known) if known or not parts else None
