"""Compare the structure of a result with the declared one, and describe the first difference."""

from __future__ import annotations

import operator
from typing import Any

from jax.tree_util import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_structure

from ..errors import describe
from ._array import ResultError, array_words, in_one_line, shown

_LEAF = tree_structure(0)
_SHOWN_KEYS = 6
_SHOWN_OF_A_TREE = 100  # characters


def is_equivalent(result: Any, declared: Any) -> bool:
    """Return whether the structures are the same, up to lists and tuples.

    A list, a tuple or a namedtuple may be returned for a declared list or tuple, but only the
    same namedtuple for a declared namedtuple. So no elements can be permuted.
    """
    return _first_difference("", declared, result) is None


def flatten_result(name: str, result: Any) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves and the structure of a result of the host function `name`.

    Raises:
        ResultError: if JAX cannot flatten it.
    """
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


def structure_error(name: str, declared: Any, result: Any, *, exact: bool = False) -> ResultError:
    """Return the error for a result of the wrong structure, naming the first key that differs.

    Args:
        name: the name of the host function.
        declared: the declared result; its leaves have shape and dtype.
        result: the returned pytree.
        exact: whether a list counts as different from a tuple.
    """
    return ResultError(
        f"{difference(name, declared, result, exact=exact)}. Return that structure",
        "this one as the result",
    )


def difference(name: str, declared: Any, result: Any, *, exact: bool = False) -> str:
    """Describe the first difference, as for `structure_error`: ``f returned ..., expected ...``."""
    which, wanted, got, detail = _first_difference(name, declared, result, exact) or (
        name, declared, result, "",
    )  # fmt: skip
    return f"{which} returned {_words(got)}, expected {_words(wanted)}{detail}"


def _first_difference(
    which: str, declared: Any, result: Any, exact: bool = False
) -> tuple[str, Any, Any, str] | None:
    """Return the path of the first difference, both nodes there, and a description; or None."""
    (wanted, tree), (got, other) = _one_level(declared), _one_level(result)
    if tree == _LEAF and other == _LEAF:
        return None
    if not exact and _group(declared) is tuple and _is_tuple_of(got, result, len(wanted)):
        result = tuple(result)
        got, other = _one_level(result)
    group = type if exact else _group
    if _LEAF in (tree, other) or group(declared) is not group(result):
        return which, declared, result, ""
    for key in wanted:
        if key not in got:
            return which, declared, result, f": {which}{key} is missing"
    for key in got:
        if key not in wanted:
            return which, declared, result, f": {which}{key} was not expected"
    if list(wanted) != list(got):
        return which, declared, result, ": the keys are in another order"
    if tree != other and _group(declared) is not tuple:
        shown = f"{_tree(result)} and {_tree(declared)}"
        return which, declared, result, f": their static fields differ: {shown}"
    below = (_first_difference(which + key, wanted[key], got[key], exact) for key in wanted)
    return next(filter(None, below), None)


def _one_level(node: Any) -> tuple[dict[str, Any], PyTreeDef]:
    """Return the children of `node` by key, as JAX writes it, and the structure of that level."""
    entries, tree = tree_flatten_with_path(node, is_leaf=lambda below: below is not node)
    return {keystr(path): child for path, child in entries}, tree


def _is_tuple_of(below: dict[str, Any], node: Any, size: int) -> bool:
    """Return whether `node` is a namedtuple of `size` that JAX flattens in the order of fields."""
    if not isinstance(node, tuple) or not len(node) == len(below) == size:
        return False
    return all(map(operator.is_, node, below.values()))


def _group(node: Any) -> Any:
    return tuple if type(node) is list else type(node)


def _words(node: Any) -> str:
    below, tree = _one_level(node)
    if tree == _LEAF:
        is_array = hasattr(node, "shape") and hasattr(node, "dtype")
        return array_words(tuple(node.shape), node.dtype) if is_array else shown(node)
    if node is None:
        return "None"
    kind = type(node).__name__
    article = "an" if kind[:1] in "AEIOUaeiou" else "a"
    if not below:
        return f"an empty {kind}"
    if _group(node) is tuple:
        return f"{article} {kind} of {len(below)}"
    keys = ", ".join(key.strip(".[]") for key in list(below)[:_SHOWN_KEYS])
    more = f" and {len(below) - _SHOWN_KEYS} more" if len(below) > _SHOWN_KEYS else ""
    return f"{article} {kind} of {keys}{more}"


def _tree(node: Any) -> str:
    text = str(_one_level(node)[1]).removeprefix("PyTreeDef(").removesuffix(")")
    return in_one_line(text, _SHOWN_OF_A_TREE)
