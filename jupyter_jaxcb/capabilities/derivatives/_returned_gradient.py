"""``gradient="theta"``: host functions that return their value and their gradient together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_leaves, tree_map, tree_unflatten

from ...stack import options
from ...stack.call import HostFunction, check_named, is_array, signature_of
from ...stack.results import result_avals
from ._custom_rules import Gate
from ._finite_differences import Differences
from ._flat_rules import (
    Call,
    check_real,
    differentiable,
    is_floating,
    product,
    refusing,
    with_flat_rule,
)

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
    """What a host function returns besides its value, and the derivative that follows.

    For a value y and a parameter t it returns an array of the shape ``y.shape + t.shape``: pytrees
    like those of `jax.jacobian`, with None where y or t is not floating-point.

    Args:
        host: the host function.
        declared: the declared result, its value alone.
        names: the parameters, as the option has them.

    Raises:
        ValueError: if the function has no such parameter.
    """

    def __init__(self, host: HostFunction, declared: Any, names: str) -> None:
        __tracebackhide__ = True
        self._host, self._declared, self._names = host, declared, names.split(", ")
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

    def differentiable(
        self,
        primal: Callable[..., Any],
        bind: Callable[..., Any],
        differences: Differences | None,
        *,
        gate: Gate | None = None,
    ) -> Callable[..., Any]:
        """Return `primal` with the derivative that the host function returns.

        Args:
            primal: the callback without a derivative.
            bind: binds a call that returns value and gradient; takes args, kwargs and ``mask=``.
            differences: differentiates the gradient; None: it is not differentiated.
            gate: what the first argument of `primal` does to its derivative, see `Gate`.
        """
        host = self._host

        def value_tangents(call: Call, out: Any, arrays: Any, moves: dict[int, Any]) -> list[Any]:
            """Return the tangents of the value: its gradient times the tangents of arguments."""
            __tracebackhide__ = True
            leaves = [_Place(n, x) for n, x in enumerate(call.leaves)]
            of = tree_leaves(self._parameters(*tree_unflatten(call.tree, leaves)))
            by = [call.first + call.places.index(t.place) for t in of]
            if not {*moves} <= {*by}:
                raise ValueError(
                    f"cannot differentiate {host.name} by other arguments than "
                    f"{', '.join(self._names)}, by which it returns its gradient. Name them in "
                    "gradient=, and return their gradients, too."
                )
            check_real(host, ([arrays[n] for n in moves], out[0]), "differentiate")
            blocks, tangents = iter(tree_leaves(out[1])), []
            for y in filter(is_floating, tree_leaves(out[0])):
                row = dict(zip(by, [next(blocks) for _ in by], strict=True))
                tangents.append(product([row[n] for n in moves], list(moves.values()), y))
            return tangents

        def rule_of_both(
            call: Call, both: Callable[..., Any], arrays: Any, moves: dict[int, Any]
        ) -> tuple[Any, list[Any]]:
            __tracebackhide__ = True
            assert differences is not None
            out = both(*arrays)
            count, rest = len(tree_leaves(out[0])), len(tree_leaves(out))
            tangents = value_tangents(call, out, arrays, moves)
            return out, tangents + differences.tangents(
                call, arrays, moves, out, range(count, rest)
            )

        def rule(
            call: Call, value: Callable[..., Any], arrays: Any, moves: dict[int, Any]
        ) -> tuple[Any, list[Any]]:
            __tracebackhide__ = True

            def both(*arrays: Any) -> Any:
                __tracebackhide__ = True
                return bind(*call.arguments(arrays), mask=call.mask(arrays))

            if differences is not None:
                out = differentiable(both, call, rule_of_both, gate)(*arrays)
            else:
                out = refusing(both, self._twice())(*arrays)
            return out[0], value_tangents(call, out, arrays, moves)

        return with_flat_rule(primal, host.name, rule, gate)

    def _twice(self) -> str:
        return (
            f"cannot differentiate {self._host.name} twice: it returns its gradient, and not the "
            "derivative of that. Register it with derivative='finite' besides gradient=, for "
            f"differences of its gradient; or define a rule, @{self._host.variable}.defjvp, in "
            "which another callback returns the gradient."
        )


class _Place:
    """Stands for an argument: its place among the leaves, and its dtype."""

    def __init__(self, place: int, x: Any) -> None:
        self.place = place
        self.dtype = jnp.result_type(x) if is_array(x) else np.dtype(object)
