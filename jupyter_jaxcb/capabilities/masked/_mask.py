"""The side of JAX: check masks, and select results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_leaves, tree_map, tree_unflatten

from ... import jax_compat
from ...stack.call import is_array
from ...stack.results import MISSING


def checked_mask(name: str, mask: Any) -> Any:
    """Return the mask of a call.

    Args:
        name: the name of the host function, for messages.
        mask: a boolean scalar.

    Raises:
        TypeError: if it is not boolean.
        ValueError: if it is not a scalar.
    """
    __tracebackhide__ = True
    dtype = jnp.result_type(mask) if is_array(mask) else None
    if dtype != np.dtype(bool):
        got = f"{mask!r}" if dtype is None else f"one of dtype {dtype}"
        raise TypeError(
            f"cannot call {name}.where: its mask must be a boolean scalar, but got {got}. Compare, "
            "as in x > 0."
        )
    if jnp.shape(mask) != ():
        raise ValueError(
            f"cannot call {name}.where: its mask must be a boolean scalar, but has the shape "
            f"{jnp.shape(mask)}. Map over it: jax.vmap(lambda mask, x: {name}.where(mask, x, "
            "otherwise=...))(mask, x)."
        )
    return jnp.asarray(mask)


def otherwise_of(
    name: str, otherwise: Any, declared: tuple[Sequence[Any], PyTreeDef]
) -> list[jax.Array]:
    """Return the values for elements without a call, flat, in the declared shapes and dtypes.

    Args:
        name: the name of the host function, for messages.
        otherwise: an array for each result, or for several of them: a prefix of their pytree.
        declared: avals and structure of the results.

    Raises:
        TypeError: if there is none, or a value does not have the declared dtype.
        ValueError: if it does not broadcast to the declared shape, or the pytrees do not match.
    """
    __tracebackhide__ = True
    avals, tree = declared
    if otherwise is MISSING:
        raise TypeError(
            f"cannot call {name}.where without otherwise=, the result where the mask is false. "
            "Pass a scalar, such as otherwise=0 or otherwise=jnp.nan, or arrays as declared: "
            f"{_words(declared)}."
        )
    try:
        values = tree_leaves(jax.tree.broadcast(otherwise, tree_unflatten(tree, avals)))
    except ValueError as error:
        raise ValueError(
            f"cannot call {name}.where: its otherwise= does not have the structure of the declared "
            f"result, {_words(declared)}. Pass one scalar for all results, or that structure."
        ) from error
    return [_otherwise(name, value, aval) for value, aval in zip(values, avals, strict=True)]


def _words(declared: tuple[Sequence[Any], PyTreeDef]) -> str:
    """Return ``(float32[2], int32[])``: the declared result."""
    avals, tree = declared
    return str(tree_unflatten(tree, [_Named(aval) for aval in avals]))


class _Named:
    """Stands for an aval in messages: ``float32[2]``."""

    def __init__(self, aval: Any) -> None:
        self._words = f"{aval.dtype}[{','.join(map(str, aval.shape))}]"

    def __repr__(self) -> str:
        return self._words


def _otherwise(name: str, value: Any, aval: Any) -> jax.Array:
    __tracebackhide__ = True
    declared = f"the declared {_Named(aval)}"
    is_plain = np.ndim(value) == 0 and not isinstance(value, jax.Array)
    given = repr(value) if is_plain else repr(_Named(jax.typeof(value)))
    try:
        if not is_array(value) or jnp.result_type(aval.dtype, value) != aval.dtype:
            raise TypeError(given)
        array = jnp.asarray(value, aval.dtype)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"cannot call {name}.where: otherwise={given} does not fit {declared}. Pass a value of "
            "that dtype."
        ) from None
    sizes = zip(array.shape[::-1], aval.shape[::-1], strict=False)
    if array.ndim > len(aval.shape) or any(n not in (1, size) for n, size in sizes):
        raise ValueError(
            f"cannot call {name}.where: otherwise={given} does not broadcast to {declared}. Pass a "
            "scalar or an array of that shape."
        )
    return jnp.broadcast_to(array, aval.shape)


def select(mask: Any, results: Sequence[Any], others: Sequence[Any]) -> list[jax.Array]:
    """Return `results` where `mask` is true, else `others`."""
    return [
        jnp.where(mask, *jax_compat.sharded_alike(y, other))
        for y, other in zip(results, others, strict=True)
    ]


def zero_elsewhere(mask: Any, tree: Any) -> Any:
    """Return tangents or cotangents, zero where `mask` is false.

    So the rule may compute NaN for an element without a call; its derivative is zero nevertheless.
    """

    def leaf(x: Any) -> Any:
        if is_array(x) and jnp.issubdtype(jnp.result_type(x), jnp.inexact):
            return jnp.where(mask, x, jnp.zeros_like(x))
        return x

    return tree_map(leaf, tree, is_leaf=lambda x: x is None)
