"""The fates asked ahead of time: what a function would make of its callbacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    ask = asked(function)

    @functools.wraps(function)
    def explained(*args: Any, **kwargs: Any) -> Recording:
        return ask(args, kwargs)[0]

    return explained


class Asked(NamedTuple):
    """A function of arrays, to be compiled for some.

    Attributes:
        function: of as many arrays as there are `values`.
        values: arrays, numbers or ``jax.ShapeDtypeStruct``.
    """

    function: Callable[..., Any]
    values: Sequence[Any]

    def compile(self) -> Recording:
        """What XLA makes of it."""
        recorder = Recorder()
        start()  # what JAX lowers is looked at
        try:
            with asking(recorder):
                jax.jit(self.function).lower(*self.values).compile()
        finally:
            stop()
        return recorder.freeze(environment=environment(), ahead=True)


def asked(
    function: Callable[..., Any],
) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Recording, Asked]]:
    """Compiles `function` for arguments; with it comes what was compiled.

    Numbers are JAX's, as for ``jax.jit``, unless the function wants them as they are: those that a
    jitted function takes as static, or that an ``if`` asks for.
    """
    if not callable(function):
        raise TypeError(
            f"cannot explain {function!r}: it is not a function. Write jaxcb.explain(f)(x), with "
            "the function first and its arguments after it."
        )

    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Recording, Asked]:
        call = _of_arrays(function, args, kwargs, _is_value)
        try:
            return call.compile(), call
        except (TypeError, ValueError):
            if not any(map(_is_number, jax.tree.leaves((args, kwargs)))):
                raise
        call = _of_arrays(function, args, kwargs, _is_array)
        return call.compile(), call

    return ask


def _of_arrays(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    traced: Callable[[Any], bool],
) -> Asked:
    """`function` with those of its arguments left open that `traced` says."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if traced(leaf)]

    def call(*values: Any) -> Any:
        whole = list(leaves)
        for place, value in zip(places, values, strict=True):
            whole[place] = value
        args, kwargs = jax.tree.unflatten(tree, whole)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", type(function).__name__)
    return Asked(call, [leaves[place] for place in places])


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic)


def _is_value(leaf: Any) -> bool:
    return _is_array(leaf) or _is_number(leaf)
