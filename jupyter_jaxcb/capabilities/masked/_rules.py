"""Derivative rules of masked calls: they are masked, too, and nothing moves elsewhere."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero
from jax.tree_util import tree_flatten, tree_map, tree_unflatten

from ...stack.call import is_array
from ..derivatives import Gate, plain
from ._mask import masking, zero_elsewhere


def with_stand_ins(mask: Any, tree: Any) -> Any:
    """Return the arrays in `tree`, with other values and no derivative where `mask` is false.

    The values are those of the first batch element whose mask is true: the rule has to be able to
    compute with them. If there is none, they are one. An array that vmap does not map over keeps
    its value, if any element needs it, and stays unbatched.
    """
    if not isinstance(mask, Tracer) and mask:  # eager code that needs the call
        return tree
    leaves, structure = tree_flatten(tree)
    places = [
        n
        for n, leaf in enumerate(leaves)
        if is_array(leaf) and not jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.extended)
    ]
    replaced = _replaced(mask, [leaves[n] for n in places])
    for n, leaf in zip(places, replaced, strict=True):
        leaves[n] = leaf
    return tree_unflatten(structure, leaves)


@jax.custom_jvp
def _replaced(mask: Any, arrays: Sequence[Any]) -> list[jax.Array]:
    values, _ = _stand_ins(mask, arrays)
    return values


# A rule may compute an infinite derivative of what stands in, and 0 * inf is NaN. That is why the
# derivative is cut off here, too, and not just where the result of the rule is selected.
def _jvp_of_replaced(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    mask, arrays = primals
    _, masks = _stand_ins(mask, [jax.lax.stop_gradient(x) for x in arrays])
    values = _replaced(mask, arrays)
    return values, [_cut(*each) for each in zip(masks, tangents[1], values, strict=True)]


def _cut(mask: Any, tangent: Any, value: jax.Array) -> Any:
    if isinstance(tangent, SymbolicZero):  # of the type of `value`, which differs in shard_map
        return SymbolicZero(jax.typeof(value).to_tangent_aval())
    return zero_elsewhere(mask, tangent)


_replaced.defjvp(_jvp_of_replaced, symbolic_zeros=True)


# Not jnp.where alone: an unbatched array would become a batched one, and the callbacks of the rule
# would get it as such.
@custom_vmap
def _stand_ins(mask: Any, arrays: Sequence[Any]) -> tuple[list[jax.Array], list[Any]]:
    """Return each array or what stands in for it, and the mask that decides on it."""
    return [jnp.where(mask, x, jnp.ones_like(x)) for x in arrays], [mask for _ in arrays]


@_stand_ins.def_vmap
def _batched(
    size: int, batched: tuple[bool, Sequence[bool]], mask: Any, arrays: Sequence[Any]
) -> tuple[Any, Any]:
    is_mask_batched, are_batched = batched
    if not is_mask_batched:
        return _stand_ins(mask, arrays), (are_batched, [False for _ in arrays])
    first = jnp.argmax(mask)  # that is true, or any if none is
    chosen = [
        _select(mask, x, first) if is_batched else x
        for x, is_batched in zip(arrays, are_batched, strict=True)
    ]
    is_any = jax.lax.dynamic_index_in_dim(mask, first, keepdims=False)
    values, masks = _stand_ins(is_any, chosen)
    own = [mask if b else m for m, b in zip(masks, are_batched, strict=True)]
    return (values, own), (are_batched, are_batched)


def _select(mask: jax.Array, x: jax.Array, first: jax.Array) -> jax.Array:
    """Return `x` where `mask` is true, and its element `first` elsewhere."""
    return jnp.where(
        mask.reshape(-1, *[1] * (x.ndim - 1)), x, jax.lax.dynamic_index_in_dim(x, first)
    )


def _jvp(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule whose first primal is a mask, which masks its callbacks too."""

    @functools.wraps(rule)
    def masked(*args: Any) -> tuple[Any, Any]:
        *fixed, (mask, *primals), (_, *tangents) = args
        primals = with_stand_ins(mask, tuple(primals))
        tangents = zero_elsewhere(mask, tuple(tangents))
        with masking(mask):
            return rule(*fixed, primals, tangents)

    return masked


def _vjp(
    forward: Callable[..., Any], backward: Callable[..., Any], nondiff_argnums: Sequence[int]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """As `_jvp`, for both functions of a reverse-mode rule."""
    places = frozenset(nondiff_argnums)

    @functools.wraps(forward)
    def masked_forward(mask: Any, *args: Any) -> tuple[Any, Any]:
        mask = plain(mask)
        moving = iter(_stood_in(mask, [x for n, x in enumerate(args) if n not in places]))
        args = tuple(x if n in places else next(moving) for n, x in enumerate(args))
        with masking(mask):
            out, residuals = forward(*args)
        return out, (mask, residuals)

    @functools.wraps(backward)
    def masked_backward(*args: Any) -> Any:
        *fixed, (mask, residuals), cotangent = args
        with masking(mask):
            cotangents = backward(*fixed, residuals, cotangent)
        return (None, *zero_elsewhere(mask, tuple(cotangents)))

    return masked_forward, masked_backward


def _stood_in(mask: Any, args: Sequence[Any]) -> Any:
    """Apply `with_stand_ins` to arguments that may be flagged for differentiation."""

    def is_flagged(leaf: Any) -> bool:
        return isinstance(leaf, CustomVJPPrimal)

    values = with_stand_ins(mask, tree_map(plain, args, is_leaf=is_flagged))
    return tree_map(
        lambda leaf, x: dataclasses.replace(leaf, value=x) if is_flagged(leaf) else x,
        args,
        values,
        is_leaf=is_flagged,
    )


def _tangents(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return `rule` with tangents that are zero where the first primal, a mask, is false."""
    return lambda primals, tangents: rule(primals, zero_elsewhere(primals[0], tangents))


MASK = Gate(_jvp, _vjp, _tangents)
