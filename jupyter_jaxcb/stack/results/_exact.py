"""Check that a result matches its declaration exactly: structure, shapes and dtypes.

The counterpart of `_checker` for `host_callback.call`, which never converted anything. The one
exception: while x64 is off, 64-bit numbers are narrowed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import PyTreeDef, tree_flatten, tree_structure, tree_unflatten

from ... import jax_compat
from ..errors import describe
from ._array import ResultError, array_words, shown
from ._casting import kind_of
from ._checker import ResultChecker
from ._structure import flatten_result, leaf_paths, structure_error

_NARROW = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in (
        (np.int64, np.int32),
        (np.uint64, np.uint32),
        (np.float64, np.float32),
        (np.complex128, np.complex64),
    )
}


def exact_checker(
    name: str, out_tree: PyTreeDef, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[Any]
) -> ResultChecker:
    """Build a function that checks a result of the host function and returns its flat arrays.

    The checker raises `ResultError` if the result does not match the declaration exactly.

    Args:
        name: the name of the host function, for messages.
        out_tree: the declared structure.
        shapes: the declared shapes, one per leaf.
        dtypes: the declared dtypes, one per leaf.
    """
    narrow = {} if jax.config.jax_enable_x64 else _NARROW  # type: ignore[attr-defined]
    declared = tree_unflatten(out_tree, map(jax.ShapeDtypeStruct, shapes, dtypes))
    wanted = list(zip(leaf_paths(declared), shapes, map(np.dtype, dtypes), strict=True))
    one_array = out_tree == tree_structure(0)

    def check(result: Any) -> tuple[np.ndarray, ...]:
        if one_array and type(result) is np.ndarray:
            leaves = (result,)
        else:
            leaves, tree = flatten_result(name, result)
            if tree != out_tree:
                raise structure_error(name, declared, result, exact=True)
        return tuple(
            _exactly(name + path, leaf, shape, dtype, narrow)
            for leaf, (path, shape, dtype) in zip(leaves, wanted, strict=True)
        )

    return check


def exact_avals(result_shape: Any) -> tuple[tuple[Any, ...], PyTreeDef]:
    """Return the flat avals and the structure that a ``result_shape`` declares.

    Raises:
        ValueError: if a leaf is not a number and has no shape and dtype.
    """
    __tracebackhide__ = True
    leaves, tree = tree_flatten(result_shape)
    return tuple(map(_aval, leaves)), tree


def _aval(leaf: Any) -> Any:
    __tracebackhide__ = True
    if isinstance(leaf, (bool, int, float, complex)):
        leaf = np.asarray(leaf)
    dtype = _dtype_of_numbers(leaf)
    if dtype is None or not hasattr(leaf, "shape"):
        raise ValueError(
            f"cannot use {leaf!r} in result_shape. The values must be either numeric scalars, or "
            "must have 'shape' and 'dtype' attributes: pass jax.ShapeDtypeStruct(shape, dtype)."
        )
    return jax_compat.shaped_array(tuple(leaf.shape), jax.dtypes.canonicalize_dtype(dtype))


def _dtype_of_numbers(leaf: Any) -> np.dtype | None:
    try:
        dtype = np.dtype(leaf.dtype)
    except (AttributeError, TypeError):  # the dtype of a PRNG key is not a NumPy dtype
        return None
    return dtype if kind_of(dtype) else None


def _exactly(
    which: str,
    value: Any,
    shape: tuple[int, ...],
    dtype: np.dtype,
    narrow: dict[np.dtype, np.dtype],
) -> np.ndarray:
    if type(value) is np.ndarray and value.dtype is dtype and value.shape == shape:
        return value
    try:
        array = np.asarray(value)
    except Exception as error:
        raise ResultError(
            f"{which} returned {shown(value)}, which is not an array: {describe(error)}"
        ) from None
    got = narrow.get(array.dtype, array.dtype)
    if got != dtype or array.shape != shape:
        what = array_words(array.shape, got) if kind_of(got) else shown(value)
        raise ResultError(
            f"{which} returned {what}, expected exactly {array_words(shape, dtype)}. Return "
            f"np.asarray(..., {dtype.name!r}) of that shape, or declare another result_shape."
        )
    return _narrowed(which, array, dtype)


def _narrowed(which: str, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):  # overflow to infinity, as in JAX's host_callback
        narrow = array.astype(dtype)
    if dtype.kind in "iu" and np.any(narrow != array):
        value = array[narrow != array].flat[0]
        raise ResultError(
            f"{which} returned {value} ({array.dtype.name}), which does not fit {dtype.name}: JAX "
            "has no 64-bit numbers while jax_enable_x64 is off. Enable x64, or return a smaller "
            "number."
        )
    return narrow
