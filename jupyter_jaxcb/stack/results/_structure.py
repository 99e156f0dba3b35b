"""The structure of an answer against the declared one: where they differ first, in words."""

from __future__ import annotations

import operator
from typing import Any

from jax.tree_util import (
    PyTreeDef,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
)

from ..core import describe
from ._array import ResultError, array_words, in_one_line, shown

_LEAF = tree_structure(0)
_SHOWN_KEYS = 6
_SHOWN_OF_A_TREE = 100  # characters


def stands_for(answer: Any, declared: Any) -> bool:
    """Whether the structures are the same; lists and tuples stand for each other.

    So does a namedtuple for them, not they for it. Nothing can be permuted by that.
    """
    return _first_difference("", declared, answer) is None


def flatten_result(name: str, answer: Any) -> tuple[list[Any], PyTreeDef]:
    """The leaves and the structure of what the host function `name` answered.

    Raises:
        ResultError: JAX cannot tell.
    """
    try:
        return tree_flatten(answer)
    except Exception as error:  # keys that cannot be sorted, a class that raises
        raise ResultError(
            f"{name} answered with {shown(answer)}, whose structure JAX cannot tell "
            f"({in_one_line(describe(error), 120)}). Return dicts whose keys "
            "are of one kind, lists, tuples and arrays, in the declared structure."
        ) from error


def leaf_paths(tree: Any) -> list[str]:
    """Where each leaf of `tree` is, as Python indexes it: ``[0]["a"]``."""
    return [keystr(path) for path, _ in tree_flatten_with_path(tree)[0]]


def structure_error(name: str, declared: Any, answer: Any, *, exact: bool = False) -> ResultError:
    """The error for an answer of another structure; names the first key that differs.

    Args:
        name: of the host function.
        declared: the declared result, of things with shape and dtype.
        answer: what came, and does not stand for it.
        exact: a list does not stand for a tuple.
    """
    which, wanted, came, detail = _first_difference(name, declared, answer, exact) or (
        name, declared, answer, "",
    )  # fmt: skip
    return ResultError(
        f"{which} answered with {_words(came)} where {_words(wanted)} was declared{detail}. Return "
        "what was declared, or declare the structure that comes as the result."
    )


def _first_difference(
    which: str, declared: Any, answer: Any, exact: bool = False
) -> tuple[str, Any, Any, str] | None:
    """Its key path, what was declared there, what came there, and what differs."""
    (wanted, tree), (came, other) = _one_level(declared), _one_level(answer)
    if tree == _LEAF and other == _LEAF:
        return None
    if not exact and _group(declared) is tuple and _is_tuple_of(came, answer, len(wanted)):
        answer = tuple(answer)
        came, other = _one_level(answer)
    group = type if exact else _group
    if _LEAF in (tree, other) or group(declared) is not group(answer):
        return which, declared, answer, ""
    for key in wanted:
        if key not in came:
            return which, declared, answer, f": {which}{key} is missing"
    for key in came:
        if key not in wanted:
            return which, declared, answer, f": {which}{key} was not declared"
    if list(wanted) != list(came):
        return which, declared, answer, ": the keys come in another order"
    if tree != other and _group(declared) is not tuple:
        shown = f"{_tree(answer)} and {_tree(declared)}"
        return which, declared, answer, f", and they differ in what is no array: {shown}"
    below = (_first_difference(which + key, wanted[key], came[key], exact) for key in wanted)
    return next(filter(None, below), None)


def _one_level(node: Any) -> tuple[dict[str, Any], PyTreeDef]:
    """What is one level below, by key as JAX writes it, and the node itself."""
    entries, tree = tree_flatten_with_path(node, is_leaf=lambda below: below is not node)
    return {keystr(path): child for path, child in entries}, tree


def _is_tuple_of(below: dict[str, Any], node: Any, size: int) -> bool:
    """Whether `node` is a namedtuple of `size`, and JAX takes its elements in their order."""
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
