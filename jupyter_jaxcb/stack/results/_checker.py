"""Check the result of a host function against its declaration: structure, shapes, dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import (
    PyTreeDef,
    tree_structure,
    tree_unflatten,
)

from ._array import ResultError as ResultError
from ._array import convert_leaf
from ._structure import flatten_result, is_equivalent, leaf_paths, structure_error

# Takes a result of the host function, and returns its flat arrays; raises if it does not match.
ResultChecker = Callable[[Any], tuple[np.ndarray, ...]]
_LEAF = tree_structure(0)


def result_checker(
    name: str,
    out_tree: PyTreeDef | None,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[Any],
    *,
    cast: bool = False,
    batch: tuple[int, ...] = (),
) -> ResultChecker:
    """Build a function that checks a result of the host function and returns its flat arrays.

    The checker raises `ResultError` if the result does not match the declaration.

    Args:
        name: the name of the host function, for messages.
        out_tree: the declared structure; with None, any result is ignored.
        shapes: the declared shapes, one per leaf.
        dtypes: the declared dtypes, one per leaf.
        cast: whether a conversion within a kind may lose information.
        batch: the batch axes of vmap in front of each of `shapes`, for messages.
    """
    if out_tree is None:
        return lambda result: ()
    kinds = [np.dtype(dtype) for dtype in dtypes]
    if out_tree == _LEAF:
        return _leaf_checker(name, shapes[0], kinds[0], (cast, batch))
    return _tree_checker(name, out_tree, shapes, kinds, (cast, batch))


def _leaf_checker(
    name: str, shape: tuple[int, ...], dtype: np.dtype, more: tuple[bool, tuple[int, ...]]
) -> ResultChecker:
    def check(result: Any) -> tuple[np.ndarray]:
        if type(result) is np.ndarray and result.dtype is dtype and result.shape == shape:
            return (result,)
        return (convert_leaf(name, "", result, shape, dtype, *more),)

    return check


def _tree_checker(
    name: str,
    out_tree: PyTreeDef,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[np.dtype],
    more: tuple[bool, tuple[int, ...]],
) -> ResultChecker:
    declared = tree_unflatten(out_tree, map(jax.ShapeDtypeStruct, shapes, dtypes))
    wanted = list(zip(leaf_paths(declared), shapes, dtypes, strict=True))
    flatten, ndarray = out_tree.flatten_up_to, np.ndarray
    others = _Flattening(name, out_tree, declared)

    def check(result: Any) -> tuple[np.ndarray, ...]:
        leaves = None
        if not others.accepted:  # fastest if it succeeds; slow if not, as its error prints `result`
            try:
                leaves = flatten(result)
            except Exception:
                pass  # raised outside, an error has no other error as its __context__
        if leaves is None:
            leaves = others.leaves(result)
        for leaf, (_, shape, dtype) in zip(leaves, wanted, strict=True):
            if type(leaf) is not ndarray or leaf.dtype is not dtype or leaf.shape != shape:
                break
        else:
            return tuple(leaves)
        return tuple(
            convert_leaf(name, path, leaf, shape, dtype, *more)
            for leaf, (path, shape, dtype) in zip(leaves, wanted, strict=True)
        )

    return check


class _Flattening:
    """Flattens results whose structure is not the declared one, but equivalent to it.

    Attributes:
        accepted: structures that were found equivalent.
    """

    def __init__(self, name: str, out_tree: PyTreeDef, declared: Any) -> None:
        self.accepted: set[PyTreeDef] = set()
        self._name = name
        self._out_tree = out_tree
        self._declared = declared

    def leaves(self, result: Any) -> list[Any]:
        """Return the leaves of `result` in the declared order.

        Raises:
            ResultError: if its structure is not equivalent to the declared one.
        """
        leaves, tree = flatten_result(self._name, result)
        if tree != self._out_tree and tree not in self.accepted:
            if not is_equivalent(result, self._declared):
                raise structure_error(self._name, self._declared, result)
            self.accepted.add(tree)
        return leaves
