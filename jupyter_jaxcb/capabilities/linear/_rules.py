"""The jvp and transpose rules of linear callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import PyTreeDef, tree_flatten, tree_map, tree_unflatten

from ... import jax_compat
from ...recording import AxisKind
from ...stack.call import to_aval
from ...stack.flavors import Differentiation, differentiates
from ._bound import FLOAT0, Bound, Zero, bound_of, tangent_of
from ._levels import below_vmaps, element_shape
from ._linear import Arguments
from ._others import jvp_by_all


def jvp(
    primitive: jax_compat.Primitive, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return results and tangents: the tangents of linear arguments take their places."""
    __tracebackhide__ = True
    bound = bound_of(primitive, **params)
    places = bound.linear.places(bound.callback)
    bound.callback.bind.in_rule = True  # from here on, its value may not be needed
    results = primitive.bind(*primals, **params)
    if any(type(t) is not Zero and n not in places for n, t in enumerate(tangents)):
        return results, jvp_by_all(bound, results, primals, tangents)
    operands = [
        _instantiated(t, x) if n in places else x
        for n, (x, t) in enumerate(zip(primals, tangents, strict=True))
    ]
    moved = bound.again(operands)
    return results, [tangent_of(y, dot) for y, dot in zip(results, moved, strict=True)]


def _instantiated(tangent: Any, primal: Any) -> Any:
    return jnp.zeros_like(primal) if type(tangent) is Zero else tangent


def transpose(
    primitive: jax_compat.Primitive, cotangents: Sequence[Any], *operands: Any, **params: Any
) -> list[Any]:
    """Return the cotangents of the linear arguments that are unknown, by the transpose."""
    __tracebackhide__ = True
    bound = bound_of(primitive, **params)
    places = bound.linear.places(bound.callback)
    unknown = [n for n, x in enumerate(operands) if jax_compat.ad.is_undefined_primal(x)]
    if not {*unknown} <= {*places}:
        raise ValueError(
            f"cannot transpose {bound.callback} by other arguments than those in which it is "
            f"linear: {', '.join(bound.linear.names)}."
        )
    found: list[Any] = [None] * len(operands)
    if all(type(ct) is Zero for ct in cotangents):
        for n in unknown:
            found[n] = Zero(operands[n].aval)
        return found
    by_transpose = _by_transpose(bound, operands, places, cotangents)
    for n, ct in zip(places, by_transpose, strict=True):
        found[n] = jax_compat.sharded_as(ct, operands[n].aval) if n in unknown else None
    return found


def _by_transpose(
    bound: Bound, operands: Sequence[Any], places: Sequence[int], cotangents: Sequence[Any]
) -> list[Any]:
    """Return the cotangents of the linear arguments, in the order of `places`."""
    __tracebackhide__ = True
    known = [n for n in range(len(operands)) if n not in places]
    axes = [level.axes for level in bound.levels]
    shapes = [element_shape(_aval(operands[n]).shape, [axis[n] for axis in axes]) for n in places]
    avals = [
        jax_compat.shaped_array(shape, _aval(operands[n]).dtype)
        for n, shape in zip(places, shapes, strict=True)
    ]

    def one(arrays: Sequence[Any]) -> list[Any]:
        values: list[Any] = [None] * len(operands)
        for n, x in zip(known, arrays, strict=False):
            values[n] = x
        for n, aval in zip(places, avals, strict=True):
            values[n] = aval
        return _call_transpose(bound, values, list(arrays[len(known) :]))

    cts = [_cotangent(ct, aval) for ct, aval in zip(cotangents, bound.result_avals, strict=True)]
    whole = [AxisKind.BATCHED] * len(cts)
    given = [[*(axis[n] for n in known), *whole] for axis in axes]
    returned = [[axis[n] for n in places] for axis in axes]
    arrays = [*(operands[n] for n in known), *cts]
    return below_vmaps(one, bound.levels, given, returned)(jax_compat.vary_together(arrays))


def _aval(operand: Any) -> Any:
    undefined = jax_compat.ad.is_undefined_primal(operand)
    return operand.aval if undefined else jax.typeof(operand)


def _cotangent(cotangent: Any, aval: Any) -> Any:
    """Return the cotangent of a result as an array; that of an integer is zero."""
    if type(cotangent) is Zero or cotangent.dtype == FLOAT0:
        return jnp.zeros(aval.shape, aval.dtype)
    return cotangent


def _call_transpose(bound: Bound, values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Bind the transpose for one batch element.

    Args:
        bound: the bind that is transposed.
        values: its operands, with avals in the place of the linear ones.
        cotangents: those of its results.
    """
    __tracebackhide__ = True
    linear, callback = bound.linear, bound.callback
    arguments = linear.arguments(callback, values)
    out = tree_flatten(arguments.vectors)
    assert callback.out_tree is not None
    ct = tree_unflatten(callback.out_tree, cotangents)
    if linear.is_self_adjoint:
        return _call_adjoint(bound, arguments, ct, out)
    if linear.transposed is None:
        raise ValueError(
            f"cannot transpose {callback}: it is linear in {', '.join(linear.names)}, but has no "
            f"transpose. Define it, as @{linear.host.variable}.deftranspose, or register it with "
            "linear_self_adjoint=True if it is its own adjoint."
        )
    return tree_flatten(bound.call(linear.transposed, arguments, ct, out))[0]


def _call_adjoint(
    bound: Bound, arguments: Arguments, ct: Any, out: tuple[Sequence[Any], PyTreeDef]
) -> list[Any]:
    """Bind a function that is its own adjoint: its transpose is its complex conjugate."""
    __tracebackhide__ = True
    avals, tree = out
    given, of_result = tree_flatten(ct)
    if of_result != tree or list(map(to_aval, given)) != list(map(to_aval, avals)):
        result, argument = (
            tree_map(lambda x: str(to_aval(x)), one)
            for one in (ct, tree_unflatten(tree, list(avals)))
        )
        raise ValueError(
            f"cannot transpose {bound.callback}: with linear_self_adjoint=True its result is like "
            f"{bound.linear.names[0]}, but {result} is not {argument}. Drop "
            "linear_self_adjoint=True, and define its transpose."
        )
    found = bound.call(bound.linear, arguments, tree_map(jnp.conj, ct), out)
    return [jnp.conj(x) for x in tree_flatten(found)[0]]


differentiates(
    Differentiation(lambda callback: callback.host.derivative is not None, jvp, transpose)
)
