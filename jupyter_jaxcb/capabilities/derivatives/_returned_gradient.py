"""``gradient="theta"``: host functions that return their value and their gradient together."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import jax
from jax.tree_util import tree_leaves, tree_map, tree_unflatten

from ...stack import options
from ...stack.call import HostFunction, check_named, signature_of
from ...stack.results import result_avals
from ._finite_differences import Differences
from ._jacobians import check_real, is_floating, moving, multiplied

options.refuse(
    "gradient",
    "partitioned",
    "the gradient of a device's rows is not a part of the gradient of all rows",
    "Drop partitioned= for one call, or call it in jax.shard_map.",
)


@options.check("gradient")
def _check_gradient(gradient: Any) -> str:
    """Return the names as one text: ``"theta, phi"``."""
    __tracebackhide__ = True
    given = gradient.split(",") if isinstance(gradient, str) else gradient
    names = [str(name).strip() for name in given] if isinstance(given, Sequence) else []
    wrong = not all(name.isidentifier() for name in names)
    if wrong or not names or len({*names}) < len(names):
        raise ValueError(
            f"cannot use gradient={gradient!r}: name the parameters by which the function returns "
            "its gradient, each once, as in gradient='theta' or gradient='theta,phi'."
        )
    return ", ".join(names)


class ReturnedGradient:
    """What a host function returns besides its value, and the rule that follows.

    For a value y and a parameter t it returns an array of the shape ``y.shape + t.shape``: pytrees
    like those of `jax.jacobian`, with None where y or t is not floating-point.

    Args:
        host: the host function.
        declared: the declared result, its value alone.
        names: the parameters, as the option has them.
        differences: differentiates the gradient; None: it is not differentiated.

    Raises:
        ValueError: if the function has no such parameter.
    """

    def __init__(
        self, host: HostFunction, declared: Any, names: str, differences: Differences | None
    ) -> None:
        __tracebackhide__ = True
        self._host, self._declared, self._names = host, declared, names.split(", ")
        self._differences = differences
        named = enumerate(self._names if self._names[1:] else ())
        places = [f"; [1][{n}] is that by {name}" for n, name in named]
        host.because = (
            f"With gradient={names!r} it returns a tuple (value, gradient), where the gradient has "
            f"the axes of the value and then those of {names}. [0] is the value, [1] the gradient"
            f"{''.join(places)}."
        )
        check_named(host, f"gradient={names!r}", self._names)

    def declared(self, *args: Any, **kwargs: Any) -> Any:
        """Return shapes and dtypes of value and gradient, for the arguments of a call."""
        __tracebackhide__ = True
        avals, tree = result_avals(self._declared, self._host.current, args, kwargs)
        by = self._parameters(args, kwargs)

        def block(y: Any) -> Any:
            return tree_map(lambda t: jax.ShapeDtypeStruct((*y.shape, *t.shape), y.dtype), by)

        value = tree_unflatten(tree, avals)
        return value, tree_map(lambda y: block(y) if is_floating(y) else None, value)

    def _parameters(self, args: Any, kwargs: Any) -> Any:
        """Return the arguments of the parameters: one pytree, or a tuple of several."""
        given = inspect.Signature(list(signature_of(self._host.current).parameters.values()))
        bound = given.bind(*args, **kwargs)
        values: Any = tuple(
            tree_map(lambda t: t if is_floating(t) else None, bound.arguments.get(name))
            for name in self._names
        )
        return values if len(values) > 1 else values[0]

    def __call__(
        self, call: Any, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return results and tangents: those of the value, and if it is needed of the gradient."""
        __tracebackhide__ = True
        results, dots = call.value(primals, differentiated=True), moving(tangents)
        value, gradient = tree_unflatten(call.callback.out_tree, range(len(results)))
        wanted = [n for n in tree_leaves(value) if is_floating(results[n])]
        by = self._operands(call.callback, primals)
        if not {*dots} <= {*by}:
            raise ValueError(
                f"cannot differentiate {self._host.name} by other arguments than "
                f"{', '.join(self._names)}, by which it returns its gradient. Name them in "
                "gradient=, and return their gradients, too."
            )
        check_real(
            self._host,
            ([primals[n] for n in dots], [results[n] for n in tree_leaves(value)]),
            "differentiate",
        )
        rest = tree_leaves(gradient)  # a block for each of `by`, for each of `wanted`

        def blocks(operands: Sequence[Any], outs: Sequence[Any]) -> list[list[Any]]:
            rows = [rest[n : n + len(by)] for n in range(0, len(rest), len(by))]
            return [[outs[row[by.index(n)]] for n in dots] for row in rows]

        moved = multiplied(call, primals, dots, results, wanted, blocks)
        if not call.callback.differentiated:
            return results, moved
        if self._differences is None:
            name = self._host.name
            raise TypeError(
                f"cannot differentiate {name} twice: it returns its gradient, and not the "
                "derivative of that. Register it with derivative='finite' besides gradient=, for "
                f"differences of its gradient; or define a rule, @{self._host.variable}.defjvp, in "
                "which another callback returns the gradient."
            )
        of_gradient = self._differences.tangents(call, primals, dots, results, rest)
        return results, [of_gradient[n] if n in rest else dot for n, dot in enumerate(moved)]

    def _operands(self, callback: Any, operands: Sequence[Any]) -> list[int]:
        """Return the operands by which the function returns its gradient, in its order."""
        marks = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands]
        leaves, _ = callback.leaves(marks)
        of = tree_leaves(self._parameters(*tree_unflatten(callback.in_tree, leaves)))
        return [n for leaf in of for n, mark in enumerate(marks) if mark is leaf]
