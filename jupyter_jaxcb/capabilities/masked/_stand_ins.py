"""What a derivative rule of a masked call computes with where the mask is false."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero
from jax.tree_util import tree_flatten, tree_unflatten

from ...stack.call import is_array
from ._mask import zero_elsewhere


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
def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    mask, arrays = primals
    _, masks = _stand_ins(mask, [jax.lax.stop_gradient(x) for x in arrays])
    values = _replaced(mask, arrays)
    return values, [_cut(*each) for each in zip(masks, tangents[1], values, strict=True)]


def _cut(mask: Any, tangent: Any, value: jax.Array) -> Any:
    if isinstance(tangent, SymbolicZero):  # of the type of `value`, which differs in shard_map
        return SymbolicZero(jax.typeof(value).to_tangent_aval())
    return zero_elsewhere(mask, tangent)


_replaced.defjvp(_jvp, symbolic_zeros=True)


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
