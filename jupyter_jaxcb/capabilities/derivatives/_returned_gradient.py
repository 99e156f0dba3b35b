"""``gradient="theta"``: host functions that return their value and their gradient together."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

from ... import jax_compat
from ...stack import options
from ...stack.call import HostFunction, check_named, is_array, signature_of
from ...stack.results import result_avals
from ._custom_rules import Gate
from ._finite_differences import check_real, is_tangent, placed, product

options.refuse(
    "derivative",
    "gradient",
    "the function returns its derivative itself",
    "Drop derivative='finite'.",
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
        return value, tree_map(lambda y: block(y) if _is_floating(y) else None, value)

    def _parameters(self, args: Any, kwargs: Any) -> Any:
        """Return the arguments of the parameters: one pytree, or a tuple of several."""
        given = inspect.Signature(list(signature_of(self._host.current).parameters.values()))
        bound = given.bind(*args, **kwargs)
        values: Any = tuple(
            tree_map(lambda t: t if _is_floating(t) else None, bound.arguments.get(name))
            for name in self._names
        )
        return values if len(values) > 1 else values[0]

    def differentiable(
        self, primal: Callable[..., Any], bind: Callable[..., Any], *, gate: Gate | None = None
    ) -> Callable[..., Any]:
        """Return `primal` with the derivative that the host function returns.

        Args:
            primal: the callback without a derivative.
            bind: binds a call that returns value and gradient; takes args, kwargs and ``mask=``.
            gate: what the first argument of `primal` does to its derivative, see `Gate`.
        """
        first = 0 if gate is None else 1

        def call(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            mask, args = args[:first], args[first:]
            mask, args, kwargs = jax_compat.vary_together((mask, args, kwargs))
            leaves, tree = tree_flatten((args, kwargs))
            places = [n for n, leaf in enumerate(leaves) if is_array(leaf)]

            def arguments(arrays: Sequence[Any]) -> tuple[Any, Any]:
                given = dict(zip(places, arrays[first:], strict=True))
                return tree_unflatten(tree, [given.get(n, x) for n, x in enumerate(leaves)])

            def plain(*arrays: Any) -> Any:
                __tracebackhide__ = True
                args, kwargs = arguments(arrays)
                return primal(*arrays[:first], *args, **kwargs)

            def both(*arrays: Any) -> Any:
                __tracebackhide__ = True
                return bind(*arguments(arrays), mask=arrays[0] if first else None)

            numbers = tree_unflatten(tree, [_Number(n, x) for n, x in enumerate(leaves)])
            by = [t.place for t in tree_leaves(self._parameters(*numbers))]
            rule = functools.partial(
                self._rule, self._once(both), [first + places.index(n) for n in by]
            )
            made = jax.custom_jvp(plain)
            rule = placed(rule)
            made.defjvp(rule if gate is None else gate.tangents(rule), symbolic_zeros=True)
            return made(*mask, *(leaves[n] for n in places))

        return call

    def _rule(
        self,
        both: Callable[..., Any],
        by: Sequence[int],
        primals: Sequence[Any],
        tangents: Sequence[Any],
    ) -> tuple[Any, Any]:
        """Compute the jvp of the function, for flat arrays.

        Args:
            both: returns value and gradient.
            by: the arrays that the gradient is by.
            primals: the arrays.
            tangents: their tangents.
        """
        __tracebackhide__ = True
        value, gradient = both(*primals)
        moving = [n for n, t in enumerate(tangents) if is_tangent(t)]
        if not {*moving} <= {*by}:
            raise ValueError(
                f"cannot differentiate {self._host.name} by other arguments than "
                f"{', '.join(self._names)}, by which it returns its gradient. Name them in "
                "gradient=, and return their gradients, too."
            )
        results, tree = tree_flatten(value)
        check_real(self._host, [primals[n] for n in moving], results, "differentiate")
        blocks = iter(tree_leaves(gradient))
        moved = []
        for y in results:
            row = [next(blocks) for _ in by] if _is_floating(y) else []
            used = [(block, tangents[n]) for block, n in zip(row, by, strict=False) if n in moving]
            if _is_floating(y):
                moved.append(product([one for one, _ in used], [t for _, t in used], y))
            else:
                moved.append(np.zeros(y.shape, jax.dtypes.float0))
        return value, tree_unflatten(tree, moved)

    def _once(self, both: Callable[..., Any]) -> Callable[..., Any]:
        """Return `both` with a jvp rule that raises TypeError."""
        guarded = jax.custom_jvp(both)

        @guarded.defjvp
        def refuse(primals: Any, tangents: Any) -> Any:
            __tracebackhide__ = True
            raise TypeError(
                f"cannot differentiate {self._host.name} twice: it returns its gradient, and not "
                f"the derivative of that. Define a rule, @{self._host.variable}.defjvp, in which "
                "another callback returns the gradient."
            )

        return guarded


class _Number:
    """Stands for an argument: its place among the leaves, its shape and its dtype."""

    def __init__(self, place: int, x: Any) -> None:
        self.place = place
        self.dtype = jnp.result_type(x) if is_array(x) else np.dtype(object)


def _is_floating(x: Any) -> bool:
    dtype = x.dtype if hasattr(x, "dtype") else jnp.result_type(x) if is_array(x) else None
    return dtype is not None and jnp.issubdtype(dtype, jnp.inexact)
