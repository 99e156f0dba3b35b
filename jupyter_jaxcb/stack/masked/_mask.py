"""The side of JAX: check masks, select results, and mask the callbacks inside a derivative rule."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.tree_util import PyTreeDef, tree_leaves, tree_unflatten

from ..core import is_array
from ..results import MISSING

# Part of the keys of JAX's caches. A function that JAX traces inside a rule may use the rule's
# mask, so it must be traced again for the next mask.
_rule_number: Any = jax.make_user_context()


class _Masked(threading.local):
    mask: Any = None  # of the derivative rule that this thread runs; None: there is none


_masked = _Masked()


def mask_of_rule() -> Any:
    """Return the mask of the derivative rule that this thread runs; None outside of such rules."""
    return _masked.mask


@contextlib.contextmanager
def masking(mask: Any) -> Iterator[None]:
    """Mask the callbacks that are called in the block: a derivative rule of a masked call."""
    if not isinstance(mask, Tracer) and mask:  # eager code that needs the call
        yield
        return
    before, _masked.mask = _masked.mask, mask
    try:
        with _rule_number(object()):
            yield
    finally:
        _masked.mask = before


def checked_mask(name: str, mask: Any) -> Any:
    """Return the mask of a call, inside a rule combined with that of the rule.

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
    outer = mask_of_rule()
    return jnp.asarray(mask) if outer is None else jnp.logical_and(mask, outer)


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
            f"Pass a scalar, such as otherwise=0 or otherwise=jnp.nan, or {_words(declared)}."
        )
    try:
        values = tree_leaves(jax.tree.broadcast(otherwise, tree_unflatten(tree, avals)))
    except ValueError as error:
        raise ValueError(
            f"cannot call {name}.where: otherwise={otherwise!r} does not have the structure of the "
            f"declared result. Pass one scalar for all results, or {_words(declared)}."
        ) from error
    return [_otherwise(name, value, aval) for value, aval in zip(values, avals, strict=True)]


def _words(declared: tuple[Sequence[Any], PyTreeDef]) -> str:
    """Return ``(float32[2], int32[])``: the declared result."""
    avals, tree = declared
    return str(tree_unflatten(tree, avals))


def _otherwise(name: str, value: Any, aval: Any) -> jax.Array:
    __tracebackhide__ = True
    declared = f"the declared {aval.dtype}{list(aval.shape)}"
    if not is_array(value) or jnp.result_type(aval.dtype, value) != aval.dtype:
        raise TypeError(
            f"cannot call {name}.where: otherwise={value!r} would change the dtype of {declared}. "
            "Pass a value of that dtype."
        )
    shape = jnp.shape(value)
    if len(shape) > len(aval.shape) or any(
        n not in (1, size) for n, size in zip(shape[::-1], aval.shape[::-1], strict=False)
    ):
        raise ValueError(
            f"cannot call {name}.where: otherwise= has the shape {shape}, which does not broadcast "
            f"to {declared}. Pass a scalar or an array of that shape."
        )
    return jnp.broadcast_to(jnp.asarray(value, aval.dtype), aval.shape)


def select(mask: Any, results: Sequence[Any], others: Sequence[Any]) -> list[jax.Array]:
    """Return `results` where `mask` is true, else `others`."""
    return [jnp.where(mask, y, other) for y, other in zip(results, others, strict=True)]


def pass_where(mask: Any, leaf: Any) -> Any:
    """Return an argument as it is, but without a derivative where `mask` is false.

    So the rule may compute NaN for an element without a call; its derivative is zero nevertheless.
    """
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.inexact):
        return jnp.where(mask, leaf, jax.lax.stop_gradient(leaf))
    return leaf
