"""JAX's rules for the calls of linear callbacks.

A call is linear in some of its operands, the vectors: their tangents take their places, and their
cotangents come from a call of the transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves, tree_map, tree_unflatten

from ... import jax_compat
from ...recording import AxisKind
from ...stack.call import to_aval
from ...stack.flavors import BoundCall
from ...stack.options import Decides, capability
from ._by_others import Element, is_inexact
from ._linear import Linear

_Zero = jax_compat.ad.Zero


def jvp(
    call: BoundCall, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return results and tangents: the tangents of linear arguments take their places."""
    __tracebackhide__ = True
    linear: Linear = call.callback.host.derivative
    places = linear.places(call.callback)
    results = call.value(primals)
    moving = {n: dot for n, dot in enumerate(tangents) if type(dot) is not _Zero}
    if {*moving} <= {*places}:
        dots = call.again(
            [moving.get(n, jnp.zeros_like(x)) if n in places else x for n, x in enumerate(primals)]
        )
    else:
        dots = _by_all(call, primals, moving, results)
    return results, [
        dot if is_inexact(y) else _Zero(jax.typeof(y).to_tangent_aval())
        for y, dot in zip(results, dots, strict=True)
    ]


def _by_all(
    call: BoundCall, primals: Sequence[Any], moving: dict[int, Any], results: Sequence[Any]
) -> list[Any]:
    """Return the tangents of `results` by linear and other arguments."""
    __tracebackhide__ = True
    linear: Linear = call.callback.host.derivative
    original = linear.original or linear
    tangent = original.by_others
    if tangent is None:
        name, names = original.host.variable, ", ".join(original.names)
        arguments = [*original.signature.parameters]
        others = " or ".join(other for other in arguments if other not in original.names)
        arguments.insert(arguments.index(original.names[0]), "x")
        raise ValueError(
            f"cannot differentiate {call.callback} by {others}: it is linear in {names} "
            f"alone. Give it a rule: @{name}.defjvp. If it solves a system, give the residual of "
            f"its result x instead, zero if x is right: {name}.defresidual(lambda "
            f"{', '.join(arguments)}: A(...) @ x - b)."
        )
    count, end = len(primals), len(primals) + len(moving)

    def of_element(arrays: Sequence[Any]) -> list[Any]:
        __tracebackhide__ = True
        assert call.callback.out_tree is not None
        result = tree_unflatten(call.callback.out_tree, arrays[end:])
        dots = dict(zip(moving, arrays[count:end], strict=True))
        moved = tree_leaves(tangent(Element(call, arrays[:count], dots, result)))
        return [
            dot if is_inexact(y) else jnp.zeros_like(y)
            for y, dot in zip(arrays[end:], moved, strict=True)
        ]

    whole = [None] * len(results)
    return call.by_elements(
        of_element,
        [*primals, *moving.values(), *results],
        [*range(count), *moving, *whole],
        whole,
    )


def transpose(call: BoundCall, cotangents: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """Return the cotangents of the linear arguments that are unknown, by the transpose."""
    __tracebackhide__ = True
    linear: Linear = call.callback.host.derivative
    places = linear.places(call.callback)
    is_unknown = list(map(jax_compat.ad.is_undefined_primal, operands))
    avals = [
        x.aval if unknown else jax.typeof(x)
        for x, unknown in zip(operands, is_unknown, strict=True)
    ]
    unknown = [n for n, is_one in enumerate(is_unknown) if is_one]
    if not {*unknown} <= {*places}:
        raise ValueError(
            f"cannot transpose {call.callback} by other arguments than those in which it is "
            f"linear: {', '.join(linear.names)}."
        )
    if all(type(ct) is _Zero for ct in cotangents):
        return [_Zero(avals[n]) if n in unknown else None for n in range(len(operands))]
    known = [n for n in range(len(operands)) if n not in places]
    vectors = {}  # their avals for one batch element, by operand
    for n in places:
        batched = sum(level.axes[n] is not AxisKind.UNBATCHED for level in call.levels)
        vectors[n] = jax_compat.shaped_array(avals[n].shape[batched:], avals[n].dtype)

    def of_element(arrays: Sequence[Any]) -> list[Any]:
        __tracebackhide__ = True
        given = dict(zip(known, arrays, strict=False)) | vectors
        element = Element(call, [given[n] for n in range(len(operands))])
        assert call.callback.out_tree is not None
        ct = tree_unflatten(call.callback.out_tree, arrays[len(known) :])
        return tree_leaves(_transposed_call(element, ct))

    # Those of integers are zero.
    cts = [
        jnp.zeros(y.shape, y.dtype) if type(ct) is _Zero or ct.dtype == jax.dtypes.float0 else ct
        for ct, y in zip(cotangents, call.result_avals, strict=True)
    ]
    back = call.by_elements(
        of_element,
        [*(operands[n] for n in known), *cts],
        [*known, *[None] * len(cts)],
        places,
    )
    by_place = dict(zip(places, back, strict=True))
    return [
        jax_compat.sharded_as(by_place[n], aval) if n in unknown else None
        for n, aval in enumerate(avals)
    ]


def _transposed_call(element: Element, ct: Any) -> Any:
    """Return the cotangents of the vectors of one batch element, which are avals."""
    __tracebackhide__ = True
    linear, callback = element.linear, element.call.callback
    vectors = linear.vectors(element.values)
    if linear.transposed is not None:
        return element.again(linear.transposed, ct, vectors)
    if not linear.options.linear_self_adjoint:
        raise ValueError(
            f"cannot transpose {callback}: it is linear in {', '.join(linear.names)}, but "
            f"has no transpose. Define it, as @{linear.host.variable}.deftranspose, or register it "
            "with linear_self_adjoint=True if it is its own adjoint."
        )
    result, argument = (tree_map(lambda x: str(to_aval(x)), tree) for tree in (ct, vectors))
    if result != argument:
        raise ValueError(
            f"cannot transpose {callback}: with linear_self_adjoint=True its result is like "
            f"{linear.names[0]}, but {result} is not {argument}. Drop linear_self_adjoint=True, "
            "and define its transpose."
        )
    # The transpose of what is its own adjoint is its complex conjugate.
    back = element.again(linear, tree_map(jnp.conj, ct), vectors)
    return tree_map(jnp.conj, back)


capability(Decides.INSIDE, lambda options: bool(options.linear), jvp=jvp, transpose=transpose)
