"""Compile a function under jit, vmap, grad, hessian, scan and remat, without running it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...recording import Matrix, Recording
from ...stack.errors import message_of
from ._explain import NOT_CALLABLE, ArrayCall, compile_call

ELEMENTS = 3  # batch size of vmap
STEPS = 5  # length of scan
MAX_WORDS = 300  # characters shown of an error message
_UNCHECKPOINTED = "Effects not supported in "
_IO_IN_CHECKPOINT = (
    "jax.checkpoint would run an io callback again in the backward pass: register it with "
    "rematerialize=False, or call it outside the checkpointed function."
)

# Maps a function of arrays and its arguments, as structs, to another function and its arguments.
Transformation = Callable[[Callable[..., Any], Sequence[Any]], tuple[Callable[..., Any], Any]]


def explain_matrix(function: Callable[..., Any]) -> Callable[..., Matrix]:
    """Report the callbacks of `function` under several transformations, without running it.

    The transformations are ``jit``; ``vmap`` over 3 elements of every argument; ``grad`` and
    ``hessian`` of the sum of its results, by its floating-point arguments; ``scan`` of 5 steps with
    different arguments; and ``remat``, which is ``grad`` of its ``jax.checkpoint``.

    Args:
        function: as for `explain`.

    Returns:
        A function that takes the arguments of `function` and returns a `Matrix`: for each
        transformation a `Recording`, or why it is refused.

    Raises:
        TypeError: `function` is not callable.
        Exception: any error of compiling it under ``jit``.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> sin = jaxcb.pure(np.sin, result="x")
    >>> matrix = jaxcb.explain_matrix(lambda x: sin(x))(1.0)
    >>> matrix.columns["vmap"].outcomes[0].compiled, list(matrix.refused)
    (3, ['grad', 'hessian', 'remat'])
    """
    if not callable(function):
        raise TypeError(NOT_CALLABLE.format(function))

    @functools.wraps(function)
    def explained(*args: Any, **kwargs: Any) -> Matrix:
        __tracebackhide__ = True
        plain, call = compile_call(function, args, kwargs)
        columns: dict[str, Recording] = {"jit": plain}
        refused: dict[str, str] = {}
        values = jax.eval_shape(lambda *values: values, *call.values)
        for name, transform in TRANSFORMATIONS.items():
            try:
                transformed, arguments = transform(call.function, values)
                columns[name] = ArrayCall(transformed, arguments).compile()
            except Exception as error:
                refused[name] = _words(error)
        return Matrix(("jit", *TRANSFORMATIONS), columns, refused)

    return explained


def _words(error: Exception) -> str:
    first = message_of(error).strip().partition("\n")[0]
    if isinstance(error, NotImplementedError) and first.startswith(_UNCHECKPOINTED):
        # JAX continues with the reprs of its effects, which contain addresses.
        first = f"{first.partition(': [')[0]}. {_IO_IN_CHECKPOINT}"
    return first[:MAX_WORDS] or type(error).__name__


def _vmapped(function: Callable[..., Any], values: Sequence[Any]) -> tuple[Callable, Any]:
    if not values:
        raise ValueError("none of its arguments is an array or number to map over")
    return jax.vmap(function), _stacked(values, ELEMENTS)


def _scanned(function: Callable[..., Any], values: Sequence[Any]) -> tuple[Callable, Any]:
    def scan(*stacked: Any) -> Any:
        return jax.lax.scan(lambda carry, xs: (carry, function(*xs)), 0, stacked, STEPS)[1]

    return scan, _stacked(values, STEPS)


def _stacked(values: Sequence[Any], count: int) -> list[Any]:
    return [jax.ShapeDtypeStruct((count, *value.shape), value.dtype) for value in values]


def _differentiated(
    derivative: Callable[..., Any],
    around: Callable[..., Any],
    function: Callable[..., Any],
    values: Sequence[Any],
) -> tuple[Callable, Any]:
    floating = [n for n, v in enumerate(values) if jnp.issubdtype(v.dtype, jnp.floating)]
    if not floating:
        raise ValueError("none of its arguments is a floating-point number to differentiate by")
    wrapped = around(function)

    def total(*arguments: Any) -> Any:
        leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(wrapped(*arguments))]
        parts = [leaf.real.sum() for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)]
        return sum(parts, jnp.zeros((), values[floating[0]].dtype))

    return derivative(total, argnums=floating), values


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


TRANSFORMATIONS: Mapping[str, Transformation] = {
    "vmap": _vmapped,
    "grad": functools.partial(_differentiated, jax.grad, _as_it_is),
    "hessian": functools.partial(_differentiated, jax.hessian, _as_it_is),
    "scan": _scanned,
    "remat": functools.partial(_differentiated, jax.grad, jax.checkpoint),
}
