"""The answer of a host function against what was declared: structure, shape, dtype."""

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
from ._array import settle
from ._structure import flatten_result, leaf_paths, stands_for, structure_error

# From what a host function returned to the flat arrays declared; raises where it does not fit.
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
    """A function from an answer of the host function to its flat arrays.

    Args:
        name: of the host function, for messages.
        out_tree: the declared structure; None: any answer is dropped.
        shapes: declared, one per leaf.
        dtypes: declared, one per leaf.
        cast: whether what is converted within its kind may lose.
        batch: axes of vmaps that lead each of `shapes`, for messages.

    The checker raises `ResultError` where the answer does not fit.
    """
    if out_tree is None:
        return lambda answer: ()
    kinds = [np.dtype(dtype) for dtype in dtypes]
    if out_tree == _LEAF:
        return _leaf_checker(name, shapes[0], kinds[0], (cast, batch))
    return _tree_checker(name, out_tree, shapes, kinds, (cast, batch))


def _leaf_checker(
    name: str, shape: tuple[int, ...], dtype: np.dtype, more: tuple[bool, tuple[int, ...]]
) -> ResultChecker:
    def check(answer: Any) -> tuple[np.ndarray]:
        if type(answer) is np.ndarray and answer.dtype is dtype and answer.shape == shape:
            return (answer,)
        return (settle(name, "", answer, shape, dtype, *more),)

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

    def check(answer: Any) -> tuple[np.ndarray, ...]:
        leaves = None
        if not others.accepted:  # the fastest way, but a slow one if it fails: it prints the answer
            try:
                leaves = flatten(answer)
            except Exception:
                pass  # what the others raise is to have no other error as its context
        if leaves is None:
            leaves = others.leaves(answer)
        for leaf, (_, shape, dtype) in zip(leaves, wanted, strict=True):
            if type(leaf) is not ndarray or leaf.dtype is not dtype or leaf.shape != shape:
                break
        else:
            return tuple(leaves)
        return tuple(
            settle(name, path, leaf, shape, dtype, *more)
            for leaf, (path, shape, dtype) in zip(leaves, wanted, strict=True)
        )

    return check


class _Flattening:
    """Answers whose structure is not the declared one, but may stand for it.

    Attributes:
        accepted: structures that did.
    """

    def __init__(self, name: str, out_tree: PyTreeDef, declared: Any) -> None:
        self.accepted: set[PyTreeDef] = set()
        self._name = name
        self._out_tree = out_tree
        self._declared = declared

    def leaves(self, answer: Any) -> list[Any]:
        """The leaves of `answer` in the declared order.

        Raises:
            ResultError: its structure does not stand for the declared one.
        """
        leaves, tree = flatten_result(self._name, answer)
        if tree != self._out_tree and tree not in self.accepted:
            if not stands_for(answer, self._declared):
                raise structure_error(self._name, self._declared, answer)
            self.accepted.add(tree)
        return leaves
