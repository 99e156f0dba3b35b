"""Random pytrees: nested containers whose leaves are zeros."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import jax


class Pair(NamedTuple):
    """A pytree node with named fields."""

    left: Any
    right: Any


def nested(tree: Any, leaves: list[Any] | tuple[Any, ...]) -> Any:
    """Return `leaves` in the structure of `tree`, or a tuple if they do not fit after shrinking."""
    structure = jax.tree.structure(tree)
    if structure.num_leaves != len(leaves):
        return tuple(leaves)
    return jax.tree.unflatten(structure, leaves)


def called_with(inputs: Any, leaves: list[Any]) -> tuple[tuple, dict[str, Any]]:
    """Return `leaves` as the (args, kwargs) of a call."""
    if inputs is None or jax.tree.structure(inputs).num_leaves != len(leaves):
        return tuple(leaves), {}
    return nested(inputs, leaves)


def drawn_tree(r: random.Random, leaves: int, depth: int = 3) -> Any:
    """Draw a tree with `leaves` leaves, possibly with empty containers and None."""
    if leaves == 1 and (depth == 0 or r.random() < 0.5):
        return 0
    if leaves == 0 and (depth == 0 or r.random() < 0.75):
        return None
    if depth == 0:
        return (0,) * leaves
    return _container(r, [drawn_tree(r, n, depth - 1) for n in _shares(r, leaves)])


def drawn_inputs(r: random.Random, leaves: int) -> tuple[tuple, dict[str, Any]]:
    """Draw (args, kwargs) with `leaves` leaves."""
    trees = [drawn_tree(r, n, 2) for n in _shares(r, leaves)]
    named = r.randint(0, len(trees)) if r.random() < 0.5 else 0
    args = trees[: len(trees) - named]
    return tuple(args), {f"k{i}": tree for i, tree in enumerate(trees[len(args) :])}


def _shares(r: random.Random, leaves: int) -> list[int]:
    shares = [0] * r.randint(1, 3)
    for _ in range(leaves):
        shares[r.randrange(len(shares))] += 1
    return shares


def _container(r: random.Random, children: list[Any]) -> Any:
    kind = r.choice((tuple, list, dict, Pair))
    if kind is Pair and len(children) == 2:
        return Pair(*children)
    if kind is dict:
        return {f"r{i}": child for i, child in enumerate(children)}
    return list(children) if kind is list else tuple(children)
