"""Differentiate a solver by the other arguments: the residual of its result is zero.

A result x of ``solve(a, b)`` has the residual ``A(a) x - b``. Its derivative is zero as well, so
``A(a) dx = db - dA(a) x`` (the implicit function theorem), which the solver solves: one more call.
The result z of the transpose has the residual ``A(a)^T z - ct``, with ``dA(a)^T z`` by JAX's
transpose of the residual's derivative.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_map, tree_structure, tree_unflatten

from ...stack.call import is_array, name_of, to_aval
from ...stack.errors import add_note
from ._linear import CallTree, Linear, first_of
from ._others import Element, inexact, is_inexact


class Residual:
    """The residual of a solver, which defines its derivative by all arguments.

    Args:
        original: what is known of the solver.
        function: takes its arguments, and its result before the first linear one.
    """

    def __init__(self, original: Linear, function: Callable[..., Any]) -> None:
        __tracebackhide__ = True
        self._original, self._function = original, function
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Raise TypeError if the residual does not take the arguments that it gets."""
        __tracebackhide__ = True
        parameters, host = self._original.parameters(), self._original.host
        names = [one.name for one in parameters if one.default is one.empty]
        names.insert(first_of(parameters, self._original.names), "x")
        try:
            signature = inspect.signature(self._function)
        except (TypeError, ValueError):  # unknown
            return
        if any(one.kind is not one.POSITIONAL_OR_KEYWORD for one in parameters):
            return
        try:
            signature.bind(*names)
        except TypeError as error:
            raise TypeError(
                f"cannot use {name_of(self._function)}{signature} as the residual of {host.name}: "
                f"{error}. It gets the arguments of {host.name}, and its result x before "
                f"{self._original.names[0]}: ({', '.join(names)})."
            ) from None

    def of_function(self, element: Element) -> Any:
        """Return the tangent of the result of a call."""
        __tracebackhide__ = True
        operands, dots, others = element.others()
        vectors = element.arguments.vectors
        change = self._changed(others, element.result, vectors, operands, dots)
        return element.call(_less(element.vector_dots(), change))

    def of_transpose(self, element: Element) -> Any:
        """Return the tangent of the result of a call of the transpose."""
        __tracebackhide__ = True
        operands, dots, others = element.others()
        leaves, tree = tree_flatten(element.arguments.vectors)
        zeros = tree_map(jnp.zeros_like, element.result)

        def changed(arrays: list[Any]) -> list[Any]:
            given = iter(arrays)
            x = [next(given) if is_inexact(leaf) else jnp.zeros_like(leaf) for leaf in leaves]
            return inexact(self._changed(others, tree_unflatten(tree, x), zeros, operands, dots))

        structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inexact(leaves)]
        (back,) = jax.linear_transpose(changed, structs)(inexact(element.result))
        given = iter(back)
        change = [next(given) if is_inexact(leaf) else leaf for leaf in leaves]
        return element.call(_less(element.vector_dots(), tree_unflatten(tree, change)))

    def at(self, call: CallTree, operands: list[Any], x: Any) -> tuple[list[Any], ...]:
        """Return the residual at `x` and at zero, and the linear arguments, each flat."""
        __tracebackhide__ = True
        arguments = self._original.arguments(call, operands)
        zeros = tree_map(jnp.zeros_like, x)
        found = [self._residual(arguments.others, one, arguments.vectors) for one in (x, zeros)]
        return tuple(inexact(one) for one in (*found, arguments.vectors))

    def _changed(
        self,
        others: Callable[..., dict[str, Any]],
        x: Any,
        vectors: Any,
        operands: list[Any],
        dots: list[Any],
    ) -> Any:
        """Return how the residual changes with the arguments that are not linear."""
        __tracebackhide__ = True

        def residual(*arrays: Any) -> Any:
            return self._residual(others(*arrays), x, vectors)

        return jax.jvp(residual, operands, dots)[1]

    def _residual(self, others: dict[str, Any], x: Any, vectors: Any) -> Any:
        __tracebackhide__ = True
        parameters = self._original.parameters()
        args, kwargs = self._original.call(others, vectors)
        first = first_of(parameters, self._original.names)
        try:
            found = self._function(*args[:first], x, *args[first:], **kwargs)
        except jax.errors.TracerArrayConversionError as error:
            add_note(
                error,
                f"raised in the residual of {self._original.host.name}, which JAX differentiates: "
                "write it with jax.numpy",
            )
            raise
        if _shapes(found) != _shapes(vectors):
            name, names = self._original.host.name, ", ".join(self._original.names)
            raise TypeError(
                f"cannot differentiate {name}: its residual is {_words(found)}, expected "
                f"{_words(vectors)} like {names}. Return A(...) @ x - b in that structure, with "
                "these shapes and dtypes."
            )
        return found


def _less(dots: Any, change: Any) -> Any:
    """Return the right-hand side for a tangent."""
    return tree_map(lambda dot, by: dot - by if is_inexact(dot) else dot, dots, change)


def _shapes(tree: Any) -> Any:
    return tree_structure(tree), [_word(x) for x in jax.tree.leaves(tree)]


def _words(tree: Any) -> str:
    return str(tree_map(_word, tree))


def _word(x: Any) -> str:
    return str(to_aval(jax.typeof(x))) if is_array(x) else repr(x)
