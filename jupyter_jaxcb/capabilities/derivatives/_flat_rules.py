"""Forward-mode rules of ours, which get the arrays among the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_flatten, tree_leaves, tree_map, tree_unflatten

from ... import jax_compat
from ...stack.call import HostFunction, is_array, number_to_array
from ...stack.trace import bound_where, find_frames
from ._custom_rules import Gate


class Call(NamedTuple):
    """The arguments of a call.

    Attributes:
        tree: the structure of ``(args, kwargs)``.
        leaves: its leaves.
        places: which leaves are arrays.
        first: the number of arrays before those of the leaves: the mask, if there is one.
    """

    tree: PyTreeDef
    leaves: list[Any]
    places: list[int]
    first: int

    def complete(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the leaves with `arrays`, without a mask, in their places."""
        given = dict(zip(self.places, arrays[self.first :], strict=True))
        return [given.get(n, leaf) for n, leaf in enumerate(self.leaves)]

    def arguments(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and keyword arguments with `arrays` in their places."""
        return tree_unflatten(self.tree, self.complete(arrays))

    def mask(self, arrays: Sequence[Any]) -> Any:
        """Return the mask of the call; None if there is none."""
        return arrays[0] if self.first else None


# rule(call, value, arrays, moves) -> result of value(*arrays), and a tangent for each of its
# floating-point leaves. `value` is the differentiable function of the arrays of the call, and
# `moves` has the tangents that are not zero, by the places of their arrays.
FlatRule = Callable[[Call, Callable[..., Any], Sequence[Any], dict[int, Any]], tuple[Any, Any]]


def with_flat_rule(
    primal: Callable[..., Any], name: str, rule: FlatRule, gate: Gate | None
) -> Callable[..., Any]:
    """Return `primal` with a forward-mode rule for its arrays; the other arguments are fixed.

    Args:
        primal: the callback without a rule.
        name: its name.
        rule: the rule.
        gate: what the first argument of `primal` does to its derivative: a mask. None: it is the
            user's.
    """
    first = 0 if gate is None else 1

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        mask, args = args[:first], args[first:]
        mask, args, kwargs = jax_compat.vary_together((mask, args, kwargs))
        leaves, tree = tree_flatten((args, kwargs))
        made = Call(tree, leaves, [n for n, leaf in enumerate(leaves) if is_array(leaf)], first)

        def plain(*arrays: Any) -> Any:
            __tracebackhide__ = True
            args, kwargs = made.arguments(arrays)
            return primal(*arrays[:first], *args, **kwargs)

        plain.__name__ = name
        return differentiable(plain, made, rule, gate)(*mask, *(leaves[n] for n in made.places))

    return call


def differentiable(
    function: Callable[..., Any], call: Call, rule: FlatRule, gate: Gate | None
) -> Callable[..., Any]:
    """Return a function of the arrays of a call with a forward-mode rule.

    The calls that the rule makes have the call site of the code that is running now: JAX applies
    the rule of a checkpoint after the function that makes the call has returned.
    """
    made = jax.custom_jvp(function)
    frames = find_frames().frames

    def apply(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        __tracebackhide__ = True
        with bound_where(frames):
            primals, tangents = tree_map(number_to_array, (primals, tangents))
            moves = {n: t for n, t in enumerate(tangents) if _is_tangent(t)}
            out, moved = rule(call, made, primals, moves)
        results, tree = tree_flatten(out)
        rest = iter(moved)
        return out, tree_unflatten(
            tree,
            [
                jax_compat.sharded_as(next(rest), y)
                if is_floating(y)
                else np.zeros(y.shape, jax.dtypes.float0)
                for y in results
            ],
        )

    made.defjvp(apply if gate is None else gate.tangents(apply), symbolic_zeros=True)
    return made


def refusing(function: Callable[..., Any], message: str) -> Callable[..., Any]:
    """Return `function` with a rule that raises TypeError."""
    guarded = jax.custom_jvp(function)

    @guarded.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        __tracebackhide__ = True
        raise TypeError(message)

    return guarded


def check_real(host: HostFunction, leaves: Any, verb: str) -> None:
    """Raise TypeError if an array in a pytree is complex."""
    __tracebackhide__ = True
    for leaf in tree_leaves(leaves):
        dtype = jnp.result_type(leaf)
        if jnp.issubdtype(dtype, jnp.complexfloating):
            raise TypeError(
                f"cannot {verb} {host.name}: {dtype.name} is complex. "
                f"Define a rule: @{host.variable}.defjvp or {host.variable}.defvjp."
            )


def product(blocks: Sequence[Any], tangents: Sequence[Any], like: Any) -> Any:
    """Return the sum of Jacobian blocks times tangents, an array like `like`."""
    parts = [
        jnp.tensordot(block, t.astype(block.dtype), axes=t.ndim)
        for block, t in zip(blocks, tangents, strict=True)
    ]
    return sum(parts, jnp.zeros(like.shape, like.dtype))


def is_floating(x: Any) -> bool:
    """Return whether `x` is a floating-point array or number."""
    dtype = x.dtype if hasattr(x, "dtype") else jnp.result_type(x) if is_array(x) else None
    return dtype is not None and jnp.issubdtype(dtype, jnp.inexact)


def _is_tangent(leaf: Any) -> bool:
    """Return whether a tangent is not zero by its type."""
    is_zero = isinstance(leaf, jax.custom_derivatives.SymbolicZero)
    return not is_zero and getattr(leaf, "dtype", None) != jax.dtypes.float0
