"""The answer of a host function against what was declared: structure, shape, dtype."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from jax.tree_util import (
    PyTreeDef,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)

_LEAF = tree_structure(0)


class ResultError(ValueError):
    """A host function's answer is not what was declared."""


def answer_checker(
    name: str,
    out_tree: PyTreeDef | None,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[Any],
    *,
    cast: bool = False,
) -> Callable[[Any], tuple[np.ndarray, ...]]:
    """A function from an answer of the host function to its flat arrays.

    Args:
        name: of the host function, for messages.
        out_tree: the declared structure; None: any answer is dropped.
        shapes: declared, one per leaf.
        dtypes: declared, one per leaf.
        cast: whether what is converted within its kind may lose.

    The checker raises `ResultError` where the answer does not fit.
    """
    if out_tree is None:
        return lambda answer: ()
    if out_tree == _LEAF:
        return _leaf_checker(name, shapes[0], np.dtype(dtypes[0]), cast)
    paths = _paths(out_tree)
    accepted = {out_tree}  # and what stands for it

    def check(answer: Any) -> tuple[np.ndarray, ...]:
        leaves, tree = tree_flatten(answer)
        if tree not in accepted:
            _check_structure(name, tree, out_tree)
            accepted.add(tree)
        return tuple(
            settle(name, path, leaf, shape, dtype, cast)
            for path, leaf, shape, dtype in zip(paths, leaves, shapes, dtypes, strict=True)
        )

    return check


def _leaf_checker(
    name: str, shape: tuple[int, ...], dtype: np.dtype, cast: bool
) -> Callable[[Any], tuple[np.ndarray]]:
    def check(answer: Any) -> tuple[np.ndarray]:
        if type(answer) is np.ndarray and answer.dtype is dtype and answer.shape == shape:
            return (answer,)
        return (settle(name, "", answer, shape, dtype, cast),)

    return check


def settle(
    name: str,
    path: str,
    value: Any,
    shape: tuple[int, ...],
    dtype: np.dtype,
    may_lose: bool = False,
) -> np.ndarray:
    """One leaf of an answer as an array of exactly the declared shape and dtype.

    A floating answer is rounded to the declared width, an integer that fits is converted; what
    would lose more (wrap around, become infinite, drop the imaginary part or the fraction)
    raises, unless it `may_lose` within its kind.

    Raises:
        ResultError: it does not fit; names the leaf, what was declared and what came.
    """
    which = f"{name}{path}" if path else name
    if isinstance(value, (list, tuple, dict)) or value is None:
        raise ResultError(
            f"{which} answered with {_short(value)} where an array {dtype.name}{list(shape)} was "
            "declared. Return one array (np.asarray(...)), or declare the structure as result."
        )
    array = np.asarray(value)
    if array.shape != shape:
        raise ResultError(
            f"{which} answered with shape {array.shape} where {shape} was declared. Return an "
            f"array of shape {shape}, or declare {array.shape} as the result's shape."
        )
    if array.dtype == dtype:
        return array
    return _cast(which, array, dtype, may_lose)


def _check_structure(name: str, tree: PyTreeDef, declared: PyTreeDef) -> None:
    """Lists and tuples stand for each other, as nothing can be permuted by that."""
    if _canonical(tree) == _canonical(declared):
        return
    raise ResultError(
        f"{name} answered with the structure {_show(tree)} where {_show(declared)} was declared. "
        "Return that structure, or declare the one that comes as the result."
    )


def _canonical(tree: PyTreeDef) -> PyTreeDef:
    def tuples(node: Any) -> Any:
        if type(node) is list or type(node) is tuple:
            return tuple(tuples(item) for item in node)
        if type(node) is dict:
            return {key: tuples(item) for key, item in node.items()}
        return node

    return tree_structure(tuples(tree_unflatten(tree, [0] * tree.num_leaves)))


def _show(tree: PyTreeDef) -> str:
    return str(tree).removeprefix("PyTreeDef(").removesuffix(")")


def _paths(tree: PyTreeDef) -> list[str]:
    leaves, _ = tree_flatten_with_path(tree_unflatten(tree, range(tree.num_leaves)))
    return [keystr(path) for path, _ in leaves]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@functools.cache
def _kind(dtype: np.dtype) -> str:
    """b, i, f, c as numpy's kinds, with ml_dtypes' floats and small integers among them."""
    if dtype.kind in "bfc":
        return dtype.kind
    if dtype.kind in "iu":
        return "i"
    for kind, info in (("f", ml_dtypes.finfo), ("i", ml_dtypes.iinfo)):
        try:
            info(dtype)
        except ValueError:
            continue
        return kind
    return "?"


_MEANING = {"b": "boolean", "i": "integer", "f": "floating", "c": "complex"}
# (came, declared): conversions that may be exact. Not in here: those that never are meant.
_CONVERTS = {"bi", "bf", "bc", "ii", "if", "ic", "ff", "fc", "cc"}


def _cast(which: str, array: np.ndarray, dtype: np.dtype, may_lose: bool) -> np.ndarray:
    came, declared = _kind(array.dtype), _kind(dtype)
    if came + declared not in _CONVERTS:
        raise ResultError(
            f"{which} answered with {_MEANING.get(came, 'no')} numbers ({array.dtype.name}, "
            f"{_short(array.tolist())}) where {dtype.name} was declared. Return "
            f".astype({dtype.name!r}) if that is meant, or declare {array.dtype.name} as the "
            "result's dtype."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
        if may_lose:
            return cast
        if declared == "i":
            limits = ml_dtypes.iinfo(dtype)
            wide = array if array.dtype.kind in "iub" else array.astype(np.int64)  # 4-bit ones
            lost = (wide < limits.min) | (wide > limits.max)
        elif came in "bi":
            lost = cast.astype(array.dtype) != array
        else:
            lost = np.isfinite(array) & ~np.isfinite(cast)
    if np.any(lost):
        value = array[lost].flat[0]
        raise ResultError(
            f"{which} answered with {value} ({array.dtype.name}), which does not fit the declared "
            f"{dtype.name}. Declare a wider dtype (64-bit ones need jax_enable_x64), or register "
            "with cast=True if that is meant."
        )
    return cast
