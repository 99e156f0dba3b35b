"""Differentiate calls by Jacobians, which JAX multiplies with the tangents of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_leaves

from ... import jax_compat
from ...stack.call import HostFunction, is_array
from ...stack.options import Decides, capability

_Zero = jax_compat.ad.Zero
# rule(call, primals, tangents) -> results and their tangents, of a `flavors.BoundCall`.
Rule = Callable[[Any, Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any]]]
# blocks(operands, results) of one batch element -> for each result that is differentiated, the
# derivatives by the operands that move: arrays of the shape result + operand.
Blocks = Callable[[Sequence[Any], Sequence[Any]], Sequence[Sequence[Any]]]


def _jvp(
    call: Any, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    __tracebackhide__ = True
    rule: Rule = call.callback.host.derivative
    return rule(call, primals, tangents)


capability(Decides.INSIDE, lambda options: bool(options.derivative or options.gradient), jvp=_jvp)


def moving(tangents: Sequence[Any]) -> dict[int, Any]:
    """Return the tangents that are not zero by their type, by operand."""
    return {
        n: dot
        for n, dot in enumerate(tangents)
        if type(dot) is not _Zero and dot.dtype != jax.dtypes.float0
    }


def multiplied(
    call: Any,
    primals: Sequence[Any],
    dots: dict[int, Any],
    results: Sequence[Any],
    wanted: Sequence[int],
    blocks: Blocks,
) -> list[Any]:
    """Return the tangents of results, those that are not differentiated are zero.

    Args:
        call: the call.
        primals: its operands.
        dots: the tangents of operands that move, by operand.
        results: its results.
        wanted: which of these to differentiate.
        blocks: their derivatives.
    """
    __tracebackhide__ = True
    count, end = len(primals), len(primals) + len(dots)
    _, behind = call.callback.leaves(primals)

    def of_element(arrays: Sequence[Any]) -> list[Any]:
        __tracebackhide__ = True
        operands, moved, outs = arrays[:count], arrays[count:end], arrays[end:]
        if behind:  # a mask: nothing moves where it is false, though the tangent may be NaN
            moved = [jnp.where(operands[-1], dot, jnp.zeros_like(dot)) for dot in moved]
        rows = blocks(operands, outs)
        return [
            sum(
                (
                    jnp.tensordot(block, dot.astype(block.dtype), axes=dot.ndim)
                    for block, dot in zip(row, moved, strict=True)
                ),
                jnp.zeros(outs[n].shape, outs[n].dtype),
            )
            for n, row in zip(wanted, rows, strict=True)
        ]

    tangents: list[Any] = [_Zero(jax.typeof(y).to_tangent_aval()) for y in results]
    if not (dots and wanted):
        return tangents
    products = call.by_elements(
        of_element,
        [*primals, *dots.values(), *results],
        [*range(count), *dots, *[None] * len(results)],
        [None] * len(wanted),
    )
    for n, dot in zip(wanted, products, strict=True):
        tangents[n] = jax_compat.sharded_as(dot, results[n])
    return tangents


def refusing(message: str) -> Rule:
    """Return a rule that raises TypeError."""

    def refuse(call: Any, primals: Any, tangents: Any) -> Any:
        __tracebackhide__ = True
        raise TypeError(message)

    return refuse


def check_real(host: HostFunction, leaves: Any, verb: str) -> None:
    """Raise TypeError if an array in a pytree is complex."""
    __tracebackhide__ = True
    for leaf in tree_leaves(leaves):
        if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            raise TypeError(
                f"cannot {verb} {host.name}: {leaf.dtype.name} is complex. "
                f"Define a rule: @{host.variable}.defjvp or {host.variable}.defvjp."
            )


def is_floating(x: Any) -> bool:
    """Return whether `x` is a floating-point array or number."""
    dtype = x.dtype if hasattr(x, "dtype") else jnp.result_type(x) if is_array(x) else None
    return dtype is not None and jnp.issubdtype(dtype, jnp.inexact)
