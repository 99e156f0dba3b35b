"""Check the result of a host function against its declaration: structure, shapes, dtypes."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import (
    PyTreeDef,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)

from ...recording import Site
from ..errors import describe
from ._array import ResultError, array_words, convert_leaf, exact_leaf, in_one_line, shown

# Takes a result of the host function, and returns its flat arrays; raises if it does not match.
ResultChecker = Callable[[Any], tuple[np.ndarray, ...]]
_LEAF = tree_structure(0)
_SHOWN_KEYS = 6
_warned: dict[Any, Any] = {}  # for `warnings`: under the default filters, a call site warns once


class ResultStructureWarning(UserWarning):
    """A host function returned its arrays in another structure than the declared one.

    `pure_callback` and `io_callback` then use the arrays in order, as JAX does: a list of one array
    passes for that array. The arrays of a dict are in the order of its keys. Decorators and the
    magic raise a `ResultError` instead.

    To silence the warning:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.ResultStructureWarning)
    """


def result_checker(
    name: str,
    out_tree: PyTreeDef | None,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[Any],
    *,
    cast: bool = False,
    batch: tuple[int, ...] = (),
    exact: bool = False,
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
        exact: whether to convert nothing, as `host_callback.call`. While x64 is off, 64-bit numbers
            are narrowed nevertheless.
    """
    if out_tree is None:
        return lambda result: ()
    convert: Callable[..., np.ndarray] = exact_leaf if exact else convert_leaf
    options = (jax.config.jax_enable_x64,) if exact else (cast, batch)  # type: ignore[attr-defined]
    kinds = [np.dtype(dtype) for dtype in dtypes]
    # Structures that were found equivalent; an exact check compares those of all results.
    accepted = {out_tree} if exact else set()
    ndarray = np.ndarray

    def declared() -> Any:
        return tree_unflatten(out_tree, map(jax.ShapeDtypeStruct, shapes, kinds))

    def flat(result: Any) -> list[Any]:
        leaves, tree = _flat(name, result)
        if tree != out_tree and tree not in accepted:
            wrong = difference(name, declared(), result, exact)
            if wrong:
                raise ResultError(f"{wrong}. Return that structure", "this one as the result")
            accepted.add(tree)
        return leaves

    if out_tree == _LEAF:
        (shape,), (dtype,) = shapes, kinds

        def check_leaf(result: Any) -> tuple[np.ndarray]:
            if type(result) is ndarray and result.dtype is dtype and result.shape == shape:
                return (result,)
            leaf = flat(result)[0] if exact else result
            return (convert(name, leaf, shape, dtype, *options),)

        return check_leaf

    paths = leaf_paths(declared())
    wanted = [(name + path, *leaf) for path, *leaf in zip(paths, shapes, kinds, strict=True)]
    flatten = out_tree.flatten_up_to

    def check(result: Any) -> tuple[np.ndarray, ...]:
        leaves = None
        if not accepted:  # fastest if it succeeds; slow if not, as its error prints `result`
            try:
                leaves = flatten(result)
            except Exception:
                pass  # raised outside, an error has no other error as its __context__
        if leaves is None:
            leaves = flat(result)
        for leaf, (_, shape, dtype) in zip(leaves, wanted, strict=True):
            if type(leaf) is not ndarray or leaf.dtype is not dtype or leaf.shape != shape:
                break
        else:
            return tuple(leaves)
        return tuple(
            convert(which, leaf, shape, dtype, *options)
            for leaf, (which, shape, dtype) in zip(leaves, wanted, strict=True)
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


def any_structure_checker(
    name: str,
    out_tree: PyTreeDef,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[Any],
    *,
    site: Site,
    **options: Any,
) -> ResultChecker:
    """Build a checker as `result_checker`, which warns where only the structure is wrong.

    `site` is the call site, which is where the warning points.
    """
    flat_tree = tree_structure((0,) * len(shapes))
    strict = result_checker(name, out_tree, shapes, dtypes, **options)
    of_leaves = result_checker(name, flat_tree, shapes, dtypes, **options)
    declared = tree_unflatten(out_tree, map(jax.ShapeDtypeStruct, shapes, dtypes))

    def check(result: Any) -> tuple[np.ndarray, ...]:
        try:
            return strict(result)
        except ResultError:
            try:
                arrays = of_leaves(tuple(_flat(name, result)[0]))
            except ResultError:
                arrays = None  # the number, shapes or dtypes of the leaves are wrong
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


def _flat(name: str, result: Any) -> tuple[list[Any], PyTreeDef]:
    try:
        return tree_flatten(result)
    except Exception as error:  # keys that cannot be sorted, a class that raises
        raise ResultError(
            f"{name} returned {shown(result)}, which JAX cannot flatten "
            f"({in_one_line(describe(error), 120)}). Return tuples, lists, arrays, and dicts with "
            "keys of one type, in the declared structure."
        ) from error


def leaf_paths(tree: Any) -> list[str]:
    """Return the path of each leaf of `tree`, as Python indexes it: ``[0]["a"]``."""
    return [keystr(path) for path, _ in tree_flatten_with_path(tree)[0]]


def difference(which: str, declared: Any, result: Any, exact: bool = False) -> str | None:
    """Describe the first difference of two structures: ``f returned ..., expected ...``.

    Lists and tuples are the same, unless `exact`: for either, a list, a tuple or a namedtuple may
    be returned, for a declared namedtuple only the same one. So no elements can be permuted. If
    the structures are equivalent, return None. `which` is the host function and the path so far.
    """
    (wanted, tree), (got, other) = _one_level(declared), _one_level(result)
    if tree == _LEAF and other == _LEAF:
        return None
    if not exact and _kind(declared) is tuple and _is_tuple_of(got, result, len(wanted)):
        result = tuple(result)
        got, other = _one_level(result)
    kind = type if exact else _kind
    if _LEAF in (tree, other) or kind(declared) is not kind(result):
        detail = ""
    elif missing := [key for key in wanted if key not in got]:
        detail = f": {which}{missing[0]} is missing"
    elif unexpected := [key for key in got if key not in wanted]:
        detail = f": {which}{unexpected[0]} was not expected"
    elif list(wanted) != list(got):
        detail = ": the keys are in another order"
    elif tree != other and kind(declared) is not tuple:
        detail = f": their static fields differ: {_tree_words(other)} and {_tree_words(tree)}"
    else:
        below = (difference(which + key, wanted[key], got[key], exact) for key in wanted)
        return next(filter(None, below), None)
    return f"{which} returned {_words(result)}, expected {_words(declared)}{detail}"


def _one_level(node: Any) -> tuple[dict[str, Any], PyTreeDef]:
    """Return the children of `node` by key, as JAX writes it, and the structure of that level."""
    entries, tree = tree_flatten_with_path(node, is_leaf=lambda below: below is not node)
    return {keystr(path): child for path, child in entries}, tree


def _is_tuple_of(below: dict[str, Any], node: Any, size: int) -> bool:
    """Return whether `node` is a namedtuple of `size` that JAX flattens in the order of fields."""
    if not isinstance(node, tuple) or not len(node) == len(below) == size:
        return False
    return all(map(operator.is_, node, below.values()))


def _kind(node: Any) -> Any:
    return tuple if type(node) is list else type(node)


def _words(node: Any) -> str:
    below, tree = _one_level(node)
    if tree == _LEAF:
        is_array = hasattr(node, "shape") and hasattr(node, "dtype")
        return array_words(tuple(node.shape), node.dtype) if is_array else shown(node)
    if node is None:
        return "None"
    name = type(node).__name__
    article = "an" if name[:1] in "AEIOUaeiou" else "a"
    if not below:
        return f"an empty {name}"
    if _kind(node) is tuple:
        return f"{article} {name} of {len(below)}"
    keys = ", ".join(key.strip(".[]") for key in list(below)[:_SHOWN_KEYS])
    more = f" and {len(below) - _SHOWN_KEYS} more" if len(below) > _SHOWN_KEYS else ""
    return f"{article} {name} of {keys}{more}"


def _tree_words(tree: PyTreeDef) -> str:
    return in_one_line(str(tree).removeprefix("PyTreeDef(").removesuffix(")"), 100)
