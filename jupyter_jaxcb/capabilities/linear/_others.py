"""Differentiate a linear callback by the arguments in which it is not linear, too.

The user gives a residual (`_residual`) or a rule by ``defjvp`` (`_own_rule`). Both have the
derivative of the function and of its transpose, for one batch element of a call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
from jax.tree_util import PyTreeDef, tree_leaves, tree_unflatten

from ... import jax_compat
from ...recording import AxisKind
from ._bound import Bound, Zero, tangent_of
from ._levels import below_vmaps
from ._linear import Arguments, Linear
from ._masks import stood_in


class Element(NamedTuple):
    """One batch element of a call that is differentiated.

    Attributes:
        bound: the call.
        operands: its operands.
        dots: the tangents of operands that move, by operand.
        results: its results, flat.
    """

    bound: Bound
    operands: Sequence[Any]
    dots: dict[int, Any]
    results: Sequence[Any]

    @property
    def linear(self) -> Linear:
        """What is known of its function."""
        return self.bound.linear

    @property
    def arguments(self) -> Arguments:
        """Its arguments."""
        return self.linear.arguments(self.bound.callback, self.operands)

    @property
    def result(self) -> Any:
        """Its result, in its structure."""
        return tree_unflatten(self._out_tree, self.results)

    @property
    def _out_tree(self) -> PyTreeDef:
        assert self.bound.callback.out_tree is not None
        return self.bound.callback.out_tree

    def others(self) -> tuple[list[Any], list[Any], Callable[..., dict[str, Any]]]:
        """Return the arguments that move besides the linear ones.

        Returns:
            The operands that move, their tangents, and a function of such operands that returns the
            arguments that the function is not linear in, by parameter.
        """
        places = self.linear.places(self.bound.callback)
        moved = [n for n in self.dots if n not in places]

        def at(*arrays: Any) -> dict[str, Any]:
            given = dict(zip(moved, arrays, strict=True))
            operands = [given.get(n, x) for n, x in enumerate(self.operands)]
            return self.linear.arguments(self.bound.callback, operands).others

        return [self.operands[n] for n in moved], [self.dots[n] for n in moved], at

    def vector_dots(self) -> Any:
        """Return the tangents of the linear arguments, as `Arguments.vectors`."""
        dots = [self.dots.get(n, jnp.zeros_like(x)) for n, x in enumerate(self.operands)]
        return self.linear.arguments(self.bound.callback, dots).vectors

    def call(self, vectors: Any) -> Any:
        """Call its function with other linear arguments."""
        __tracebackhide__ = True
        out = list(map(jax.typeof, self.results)), self._out_tree
        return self.bound.call(self.linear, self.arguments, vectors, out)


def jvp_by_all(
    bound: Bound, results: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Return the tangents of `results`, by linear and other arguments."""
    __tracebackhide__ = True
    original = bound.linear.original
    by_others = (original or bound.linear).by_others
    if by_others is None:
        _refuse(bound)
    rule = by_others.of_function if original is None else by_others.of_transpose
    moved = [n for n, t in enumerate(tangents) if type(t) is not Zero]
    of_element = functools.partial(_of_element, rule, bound, moved, len(primals))
    axes = [level.axes for level in bound.levels]
    whole = [AxisKind.BATCHED] * len(results)
    given = [[*axis, *(axis[n] for n in moved), *whole] for axis in axes]
    function = below_vmaps(of_element, bound.levels, given, [whole for _ in axes])
    found = function(jax_compat.vary_together([*primals, *(tangents[n] for n in moved), *results]))
    return [tangent_of(y, dot) for y, dot in zip(results, found, strict=True)]


def _of_element(
    rule: Callable[[Element], Any],
    bound: Bound,
    moved: Sequence[int],
    count: int,
    arrays: Sequence[Any],
) -> list[Any]:
    """Return the tangents of the results of one batch element."""
    __tracebackhide__ = True
    operands, dots, results = (
        arrays[:count],
        arrays[count : count + len(moved)],
        arrays[count + len(moved) :],
    )
    operands = stood_in(operands, bound.linear.arguments(bound.callback, operands).behind)
    element = Element(bound, operands, dict(zip(moved, dots, strict=True)), results)
    found = tree_leaves(rule(element))
    return [
        dot if is_inexact(y) else jnp.zeros_like(y) for y, dot in zip(results, found, strict=True)
    ]


def is_inexact(x: Any) -> bool:
    """Return whether an array may have a derivative."""
    return jnp.issubdtype(x.dtype, jnp.inexact)


def inexact(tree: Any) -> list[Any]:
    """Return the leaves of a pytree that may have a derivative."""
    return [x for x in tree_leaves(tree) if is_inexact(x)]


def _refuse(bound: Bound) -> NoReturn:
    __tracebackhide__ = True
    linear = bound.linear
    known = linear.original or linear
    name, names = known.host.variable, ", ".join(known.names)
    others = [one.name for one in known.parameters() if one.name not in known.names]
    arguments = [one.name for one in known.parameters()]
    arguments.insert(arguments.index(known.names[0]), "x")
    raise ValueError(
        f"cannot differentiate {bound.callback} by {' or '.join(others)}: it is linear in {names} "
        f"alone. Give it a rule: @{name}.defjvp. If it solves a system, give the residual of its "
        f"result x instead, zero if x is right: {name}.defresidual(lambda {', '.join(arguments)}: "
        "A(...) @ x - b)."
    )
