"""The fates asked ahead of time: what a function would make of its callbacks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..recording import Recorder, Recording
from ._programs import asking
from ._record import environment, start, stop


def explain(function: Callable[..., Any]) -> Callable[..., Recording]:
    """Says what ``jax.jit`` of `function` would make of each callback in it, without running it.

    The function is traced, lowered and compiled as it would be by ``jax.jit``, and nothing of it is
    run: no host function is called. It may be transformed (``jax.grad(f)``, ``jax.vmap(f)``) or
    jitted itself. What XLA cannot know in advance stays open: calls that depend on data.

    Args:
        function: what would be called.

    Returns:
        A function of the arguments. Arrays may be given as ``jax.ShapeDtypeStruct``; what is
        neither an array nor a number goes in as it is. It returns a `Recording` with `ahead` set,
        whose `outcomes` say for each callback its fate, the host calls that a run makes as the
        source reads (`written`) and as compiled (`compiled`), the reason and the remedy.

    Raises:
        TypeError: `function` is not callable.
        Exception: whatever tracing or compiling it raises.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result="x")
    >>> def f(x):
    ...     double(x)
    ...     return x + 1
    >>> jaxcb.explain(f)(np.float32(3)).outcomes[0].fate
    <Fate.UNUSED: 'unused'>
    """
    if not callable(function):
        raise TypeError(
            f"cannot explain {function!r}: it is not a function. Write jaxcb.explain(f)(x), with "
            "the function first and its arguments after it."
        )

    @functools.wraps(function)
    def explained(*args: Any, **kwargs: Any) -> Recording:
        try:
            return _explained(function, args, kwargs, _is_value)
        except (jax.errors.ConcretizationTypeError, TypeError, ValueError):
            # A number may be wanted as it is: an argument that is static, or asked by an `if`.
            if not any(map(_is_number, jax.tree.leaves((args, kwargs)))):
                raise
        return _explained(function, args, kwargs, _is_array)

    return explained


def _explained(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    traced: Callable[[Any], bool],
) -> Recording:
    """Compiles `function`, with those arguments as JAX's that `traced` says."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if traced(leaf)]

    def call(*values: Any) -> Any:
        whole = list(leaves)
        for place, value in zip(places, values, strict=True):
            whole[place] = value
        args, kwargs = jax.tree.unflatten(tree, whole)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", type(function).__name__)
    recorder = Recorder()
    start()  # what JAX lowers is looked at
    try:
        with asking(recorder):
            jax.jit(call).lower(*(leaves[place] for place in places)).compile()
    finally:
        stop()
    return recorder.freeze(environment=environment(), ahead=True)


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic)


def _is_value(leaf: Any) -> bool:
    return _is_array(leaf) or _is_number(leaf)
