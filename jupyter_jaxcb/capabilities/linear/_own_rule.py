"""Differentiate a linear callback by the user's own rule, where JAX does not apply it.

`jax.custom_jvp` applies a rule by ``defjvp`` where JAX differentiates a call of the callback. Where
JAX differentiates what a derivative has computed, it has dropped the rule or transposed the call:
in second derivatives, of loops in particular. The derivative of the transpose is the transpose of
the rule, which is linear in the linear arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

from ._bound import FLOAT0
from ._linear import Linear
from ._masks import applied
from ._others import Element, inexact, is_inexact


class OwnRule:
    """A forward-mode rule, which defines the derivative by all arguments.

    Args:
        original: what is known of the callback.
        rule: ``rule(*fixed, primals, tangents)`` returns the result and its tangent.
        nondiff_argnums: the arguments that `rule` gets as `fixed`.
        symbolic_zeros: whether `rule` takes tangents that are zero as such.
    """

    def __init__(
        self,
        original: Linear,
        rule: Callable[..., Any],
        nondiff_argnums: Sequence[int],
        symbolic_zeros: bool,
    ) -> None:
        self._original, self._rule = original, rule
        self._fixed, self._symbolic_zeros = sorted({*nondiff_argnums}), symbolic_zeros

    def of_function(self, element: Element) -> Any:
        """Return the tangent of the result of a call."""
        __tracebackhide__ = True
        dots = [element.dots.get(n, self._zero(x)) for n, x in enumerate(element.operands)]
        moved = self._original.arguments(element.bound.callback, dots)
        return self._applied(element, element.arguments.vectors, moved.others, moved.vectors)

    def of_transpose(self, element: Element) -> Any:
        """Return the tangent of the result of a call of the transpose."""
        __tracebackhide__ = True
        places = element.linear.places(element.bound.callback)
        dots = [
            element.dots[n] if n in element.dots and n not in places else self._zero(x)
            for n, x in enumerate(element.operands)
        ]
        others = element.linear.arguments(element.bound.callback, dots).others
        leaves, tree = tree_flatten(element.result)

        def moved(given: list[Any]) -> list[Any]:
            rest = iter(given)
            vectors = tree_unflatten(
                tree, [next(rest) if is_inexact(x) else jnp.zeros_like(x) for x in leaves]
            )
            return inexact(self._applied(element, vectors, others, self._zeros(vectors)))

        structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inexact(leaves)]
        (by_rule,) = jax.linear_transpose(moved, structs)(inexact(element.arguments.vectors))
        rest = iter(by_rule)
        by_cotangent = tree_leaves(element.call(element.vector_dots()))
        return [y + next(rest) if is_inexact(y) else y for y in by_cotangent]

    def _applied(self, element: Element, vectors: Any, others: Any, vector_dots: Any) -> Any:
        """Return the tangent that the rule gives for the function itself."""
        __tracebackhide__ = True
        arguments = element.arguments
        primals, _ = self._original.call(self._complete(arguments.others, lambda x: x), vectors)
        dots, _ = self._original.call(self._complete(others, self._zeros), vector_dots)
        moving = [n for n in range(len(primals)) if n not in self._fixed]
        fixed = [primals[n] for n in self._fixed]
        given = tuple(primals[n] for n in moving), tuple(dots[n] for n in moving)
        return applied(self._rule, arguments.behind, fixed, *given)[1]

    def _complete(self, others: dict[str, Any], default: Callable[[Any], Any]) -> dict[str, Any]:
        """Return arguments with those that were not passed, from their defaults, as JAX does."""
        defaults = {
            one.name: default(one.default)
            for one in self._original.parameters()
            if one.default is not one.empty
        }
        return {**defaults, **others}

    def _zeros(self, tree: Any) -> Any:
        return tree_map(self._zero, tree)

    def _zero(self, x: Any) -> Any:
        """Return the tangent of what does not move, as the rule takes it."""
        if self._symbolic_zeros:
            return SymbolicZero(jax.typeof(x).to_tangent_aval())
        x = jnp.asarray(x)
        return jnp.zeros_like(x) if is_inexact(x) else np.zeros(x.shape, FLOAT0)
