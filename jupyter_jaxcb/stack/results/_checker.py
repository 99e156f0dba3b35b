"""Check the result of a host function against its declaration: structure, shapes, dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import PyTreeDef, tree_structure, tree_unflatten

from ...recording import Site
from ._array import ResultError as ResultError
from ._array import convert_leaf
from ._structure import difference, flatten_result, is_equivalent, leaf_paths, structure_error

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


def undeclared(check: ResultChecker, because: str) -> ResultChecker:
    """Return a checker whose errors say why the result was not declared by its user."""

    def check_undeclared(result: Any) -> tuple[np.ndarray, ...]:
        try:
            return check(result)
        except ResultError as error:
            raise error.undeclared(because) from error.__cause__

    return check_undeclared


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


# Given to `warnings`, so that a call site in a loop warns once under the default filters.
_warned: dict[Any, Any] = {}


class ResultStructureWarning(UserWarning):
    """A host function returned its arrays in another structure than the declared one.

    `pure_callback` and `io_callback` then use the arrays in order, as JAX does: a list of one array
    passes for that array. The arrays of a dict are in the order of its keys. Decorators and the
    magic raise a `ResultError` instead.

    To silence the warning:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.ResultStructureWarning)
    """


def any_structure_checker(
    name: str,
    out_tree: PyTreeDef,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[Any],
    *,
    site: Site,
    cast: bool = False,
    batch: tuple[int, ...] = (),
) -> ResultChecker:
    """Build a checker as `result_checker`, which warns where only the structure is wrong.

    Args:
        name: the name of the host function, for messages.
        out_tree: the declared structure.
        shapes: the declared shapes, one per leaf.
        dtypes: the declared dtypes, one per leaf.
        site: the call site, which is where the warning points.
        cast: as for `result_checker`.
        batch: as for `result_checker`.
    """
    flat_tree = tree_structure((0,) * len(shapes))
    strict = result_checker(name, out_tree, shapes, dtypes, cast=cast, batch=batch)
    of_leaves = result_checker(name, flat_tree, shapes, dtypes, cast=cast, batch=batch)
    declared = tree_unflatten(out_tree, map(jax.ShapeDtypeStruct, shapes, dtypes))

    def check(result: Any) -> tuple[np.ndarray, ...]:
        try:
            return strict(result)
        except ResultError:
            arrays = _fitting(name, result, of_leaves)
            if arrays is None:
                raise
        warnings.warn_explicit(  # outside of the except block, as a filter may make it an error
            f"{difference(name, declared, result)} ({site.flavor} callback, {site.where}). Its "
            "arrays are used in order, as in JAX. Return the declared structure, or declare this "
            "one as the result.",
            ResultStructureWarning,
            site.file,
            site.line,
            registry=_warned,
        )
        return arrays

    return check


def _fitting(name: str, result: Any, check: ResultChecker) -> tuple[np.ndarray, ...] | None:
    """Return the leaves of `result` as arrays; None if their number, shapes or dtypes are wrong."""
    try:
        return check(tuple(flatten_result(name, result)[0]))
    except ResultError:
        return None
