"""Derivative rules of masked calls: they are masked, too, and nothing moves elsewhere."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.custom_derivatives import CustomVJPPrimal
from jax.tree_util import tree_flatten, tree_map, tree_unflatten

from ... import jax_compat
from ...stack.call import is_array
from ..derivatives import Gate
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
    for n in places:
        leaves[n], _ = _stand_in_p.bind(mask, leaves[n])
    return tree_unflatten(structure, leaves)


# Not jnp.where alone: an unbatched array would become a batched one, and the callbacks of the rule
# would get it as such. Not `jax.custom_batching.custom_vmap`, which JAX cannot transpose, nor split
# into what depends on tangents and what does not, as it does in loops.
_stand_in_p = jax_compat.Primitive("jaxcb_stand_in")
_stand_in_p.multiple_results = True


@_stand_in_p.def_impl
def _of_one_element(mask: Any, x: Any) -> list[Any]:
    """Return the array or its replacement, and the mask that selects between the two."""
    return [jnp.where(mask, x, jnp.ones_like(x)), mask]


@_stand_in_p.def_abstract_eval
def _avals(mask: Any, x: Any) -> list[Any]:
    return [*jax_compat.varying_like([x], [mask, x]), mask]


def _batched(
    operands: Sequence[Any], axes: Sequence[Any], *, axis_name: str
) -> tuple[list[Any], list[Any]]:
    mask, x = [
        x if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    ]
    mask_axis, axis = [None if axis is None else 0 for axis in axes]
    if mask_axis is None:
        return _stand_in_p.bind(mask, x), [axis, None]
    if mask.shape[0] == 0 and axis is not None:
        return [x, mask], [0, 0]
    if mask.shape[0] == 0:
        return _stand_in_p.bind(mask.any(0), x), [None, None]
    first = jnp.argmax(mask)  # that is true, or any if none is
    is_any = jax_compat.element_of(mask, first)[0]
    if axis is None:
        return _stand_in_p.bind(is_any, x), [None, None]
    value, _ = _stand_in_p.bind(is_any, jax_compat.elements_or(mask, x))
    return [value, mask], [0, 0]


# A rule may compute an infinite derivative of a replacement, and 0 * inf is NaN. That is why the
# derivative is cut off here, too, and not just where the result of the rule is selected.
def _jvp_of_stand_in(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    value, mask = _stand_in_p.bind(*primals)
    _, dot = tangents
    moved = not isinstance(dot, jax_compat.ad.Zero)
    return [value, mask], [
        zero_elsewhere(mask, dot) if moved else _no_tangent(value),
        _no_tangent(mask),
    ]


def _no_tangent(primal: Any) -> Any:
    return jax_compat.ad.Zero(jax.typeof(primal).to_tangent_aval())


def _transposed_stand_in(cotangents: Sequence[Any], mask: Any, _: Any) -> list[Any]:
    """Return the cotangent of the array, which a rule of a linear callback may be linear in."""
    cotangent, _ = cotangents
    moved = not isinstance(cotangent, jax_compat.ad.Zero)
    return [None, zero_elsewhere(mask, cotangent) if moved else cotangent]


jax_compat.ad.primitive_jvps[_stand_in_p] = _jvp_of_stand_in
jax_compat.ad.primitive_transposes[_stand_in_p] = _transposed_stand_in
jax_compat.register_batching(_stand_in_p, _batched)
jax_compat.mlir.register_lowering(_stand_in_p, jax_compat.mlir.lower_fun(_of_one_element))


def _in_rule(mask: Any, rule: Callable[..., Any], *args: Any) -> Any:
    if not isinstance(mask, Tracer) and mask:  # eager code that needs the call
        return rule(*args)
    return jax_compat.in_rule(mask, with_stand_ins, rule, *args)


def _jvp(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule whose first primal is a mask, which masks its callbacks too."""

    @functools.wraps(rule)
    def masked(*args: Any) -> tuple[Any, Any]:
        *fixed, (mask, *primals), (_, *tangents) = args
        primals = with_stand_ins(mask, tuple(primals))
        tangents = zero_elsewhere(mask, tuple(tangents))
        return _in_rule(mask, rule, *fixed, primals, tangents)

    return masked


def _vjp(
    forward: Callable[..., Any], backward: Callable[..., Any], nondiff_argnums: Sequence[int]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """As `_jvp`, for both functions of a reverse-mode rule."""
    places = frozenset(nondiff_argnums)

    @functools.wraps(forward)
    def masked_forward(mask: Any, *args: Any) -> Any:
        mask = _plain(mask)
        moving = iter(_stood_in(mask, [x for n, x in enumerate(args) if n not in places]))
        args = tuple(x if n in places else next(moving) for n, x in enumerate(args))
        pair = _in_rule(mask, forward, *args)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return pair  # JAX says what is wrong with it
        out, residuals = pair
        return out, (mask, residuals)

    @functools.wraps(backward)
    def masked_backward(*args: Any) -> Any:
        *fixed, (mask, residuals), cotangent = args
        cotangents = _in_rule(mask, backward, *fixed, residuals, cotangent)
        if not isinstance(cotangents, tuple | list):
            return cotangents  # JAX says what is wrong with them
        return (None, *zero_elsewhere(mask, tuple(cotangents)))

    return masked_forward, masked_backward


def _stood_in(mask: Any, args: Sequence[Any]) -> Any:
    """Apply `with_stand_ins` to arguments that may be flagged for differentiation."""
    values = with_stand_ins(mask, tree_map(_plain, args, is_leaf=_is_flagged))
    return tree_map(
        lambda leaf, x: dataclasses.replace(leaf, value=x) if _is_flagged(leaf) else x,
        args,
        values,
        is_leaf=_is_flagged,
    )


def _plain(leaf: Any) -> Any:
    return leaf.value if _is_flagged(leaf) else leaf


def _is_flagged(leaf: Any) -> bool:
    return isinstance(leaf, CustomVJPPrimal)


MASK = Gate(_jvp, _vjp)
