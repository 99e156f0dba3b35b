"""The derivative of a linear callback by its other arguments: by a residual, or the user's rule.

Both are a function of one batch element of a call, which returns the tangent of its result. The
call may be that of the transpose, which JAX makes in derivatives, and differentiates again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.tree_util import tree_flatten, tree_map, tree_unflatten

from ...stack.call import is_array, to_aval
from ...stack.errors import add_note
from ...stack.flavors import BoundCall
from ..masked import MASK, with_stand_ins
from ._linear import Linear, check_takes


class Element:
    """One batch element of a call.

    Attributes:
        call: the call.
        linear: what is declared of its function.
        operands: its operands.
        dots: the tangents of operands that move, by operand.
        result: its result.
        values: its arguments, by parameter.
        behind: the operands behind the arguments: a mask.
    """

    def __init__(
        self,
        call: BoundCall,
        operands: Sequence[Any],
        dots: Mapping[int, Any] | None = None,
        result: Any = None,
    ) -> None:
        self.call, self.operands, self.dots, self.result = call, operands, dots or {}, result
        self.linear: Linear = call.callback.host.derivative
        _, self.behind = self.linear.arguments(call.callback, operands)
        if self.behind and dots:  # where the mask is false, compute with those of another element
            first = with_stand_ins(self.behind[0], tuple(operands[:-1]))
            self.operands = [*first, *self.behind]
        self.values, _ = self.linear.arguments(call.callback, self.operands)

    def tangents(self, zero: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the tangents of the arguments by parameter; `zero` makes those that are zero."""
        dots = [self.dots[n] if n in self.dots else zero(x) for n, x in enumerate(self.operands)]
        return self.linear.arguments(self.call.callback, dots)[0]

    def again(self, linear: Linear, vectors: Any, like: Any) -> Any:
        """Call its function, or the transpose of that, with other vectors.

        Args:
            linear: the function to call.
            vectors: what it is linear in, as in `Linear.vectors`.
            like: the avals of its result.
        """
        __tracebackhide__ = True
        args, kwargs = linear.call(linear.with_vectors(self.values, vectors))
        return self.call.of_element(linear.host, like, args, kwargs, linear.options, self.behind)


def by_residual(original: Linear, function: Callable[..., Any]) -> Callable[[Element], Any]:
    """Return the derivative of a solver by the residual of its result.

    A result x of ``solve(a, b)`` has the residual ``A(a) x - b``. Its derivative is zero as well,
    so ``A(a) dx = db - dA(a) x`` (the implicit function theorem), which the solver solves: one more
    call. The result z of the transpose has the residual ``A(a)^T z - ct``, with ``dA(a)^T z`` by
    JAX's transpose of the residual's derivative.

    Args:
        original: what is declared of the solver.
        function: takes its arguments, and its result before the first linear one.
    """
    __tracebackhide__ = True
    name, parameters = original.host.name, original.signature.parameters
    place = [*parameters].index(original.first)
    given = [known.name for known in parameters.values() if known.default is known.empty]
    given.insert(place, "x")
    if all(known.kind is known.POSITIONAL_OR_KEYWORD for known in parameters.values()):
        check_takes(
            function,
            given,
            f"the residual of {name}",
            f"the arguments of {name}, and its result x before {original.names[0]}: "
            f"({', '.join(given)})",
        )

    def product(values: Mapping[str, Any], x: Any, like: Any) -> Any:
        """Return ``A(a) x``: the residual where the vectors are zero."""
        __tracebackhide__ = True
        zeros = tree_map(jnp.zeros_like, like)
        args, kwargs = original.call(original.with_vectors(values, zeros))
        try:
            made = function(*args[:place], x, *args[place:], **kwargs)
        except jax.errors.TracerArrayConversionError as error:
            add_note(
                error,
                f"raised in the residual of {name}, which JAX differentiates: "
                "write it with jax.numpy",
            )
            raise
        if tree_map(_word, made) != tree_map(_word, like):
            raise TypeError(
                f"cannot differentiate {name}: its residual is {tree_map(_word, made)}, expected "
                f"{tree_map(_word, like)} like {', '.join(original.names)}. Return A(...) @ x - b "
                "in that structure, with these shapes and dtypes."
            )
        return made

    def tangent(element: Element) -> Any:
        __tracebackhide__ = True
        linear, callback, operands = element.linear, element.call.callback, element.operands
        others = sorted({*element.dots} - {*linear.places(callback)})
        vectors, is_transpose = linear.vectors(element.values), linear.original is not None
        like = element.result if is_transpose else vectors

        def change(x: Any) -> Any:
            """Return how ``A(a) x`` changes with a."""

            def of_others(*arrays: Any) -> Any:
                moved = dict(zip(others, arrays, strict=True))
                at = [moved.get(n, operand) for n, operand in enumerate(operands)]
                return product(linear.arguments(callback, at)[0], x, like)

            primals, dots = [operands[n] for n in others], [element.dots[n] for n in others]
            return jax.jvp(of_others, primals, dots)[1]

        if is_transpose:
            changed = _transposed(change, vectors, element.result)
        else:
            changed = change(element.result)
        dots = linear.vectors(element.tangents(jnp.zeros_like))
        return element.again(
            linear,
            tree_map(lambda dot, by: dot - by if is_inexact(dot) else dot, dots, changed),
            tree_map(jax.typeof, element.result),
        )

    return tangent


def by_rule(
    original: Linear, rule: Callable[..., Any], nondiff_argnums: Sequence[int], symbolic_zeros: bool
) -> Callable[[Element], Any]:
    """Return the derivative by the user's forward-mode rule, where JAX does not apply it.

    `jax.custom_jvp` applies a rule by ``defjvp`` where JAX differentiates a call of the callback.
    Where JAX differentiates what a derivative has computed, it has dropped the rule or transposed
    the call: in second derivatives, of loops in particular. The derivative of the transpose is the
    transpose of the rule, which is linear in the vectors.

    Args:
        original: what is declared of the callback.
        rule: ``rule(*fixed, primals, tangents)`` returns the result and its tangent.
        nondiff_argnums: the arguments that `rule` gets as ``fixed``.
        symbolic_zeros: whether `rule` takes tangents that are zero as such.
    """

    def zero(x: Any) -> Any:
        if symbolic_zeros:
            return SymbolicZero(jax.typeof(x).to_tangent_aval())
        x = jnp.asarray(x)
        return jnp.zeros_like(x) if is_inexact(x) else np.zeros(x.shape, jax.dtypes.float0)

    def applied(element: Element, values: dict[str, Any], dots: dict[str, Any]) -> Any:
        """Return the tangent of the function itself, masked as the call is."""
        __tracebackhide__ = True
        primals, _ = original.call(values)
        tangents, _ = original.call(dots)
        fixed = [primals[n] for n in sorted({*nondiff_argnums})]
        moving = [n for n in range(len(primals)) if n not in nondiff_argnums]
        at, by = (tuple(each[n] for n in moving) for each in (primals, tangents))
        if element.behind:
            (mask,) = element.behind
            return MASK.jvp(rule)(*fixed, (mask, *at), (None, *by))[1]
        return rule(*fixed, at, by)[1]

    def tangent(element: Element) -> Any:
        __tracebackhide__ = True
        linear, values = element.linear, element.values
        if linear.original is None:
            return applied(element, values, element.tangents(zero))

        def by_others(vectors: Any) -> Any:
            zeros = tree_map(zero, vectors)
            dots = original.with_vectors(element.tangents(zero), zeros)
            return applied(element, original.with_vectors(values, vectors), dots)

        moved = _transposed(by_others, element.result, linear.vectors(values))
        cotangent = linear.vectors(element.tangents(jnp.zeros_like))
        by_cotangent = element.again(linear, cotangent, tree_map(jax.typeof, element.result))
        return tree_map(lambda y, by: y + by if is_inexact(y) else y, by_cotangent, moved)

    return tangent


def is_inexact(x: Any) -> bool:
    """Return whether an array may have a derivative."""
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _transposed(function: Callable[[Any], Any], like: Any, ct: Any) -> Any:
    """Apply the transpose of a linear function of a pytree `like` to `ct`; integers are zero."""
    leaves, tree = tree_flatten(like)

    def filled(arrays: Sequence[Any]) -> Any:
        given = iter(arrays)
        return tree_unflatten(
            tree, [next(given) if is_inexact(x) else jnp.zeros_like(x) for x in leaves]
        )

    def inexact(tree: Any) -> list[Any]:
        return [x for x in jax.tree.leaves(tree) if is_inexact(x)]

    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inexact(leaves)]
    (back,) = jax.linear_transpose(lambda arrays: inexact(function(filled(arrays))), structs)(
        inexact(ct)
    )
    return filled(back)


def _word(x: Any) -> str:
    return str(to_aval(jax.typeof(x))) if is_array(x) else repr(x)
