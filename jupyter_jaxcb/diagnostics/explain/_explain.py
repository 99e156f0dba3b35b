"""The statuses asked ahead of time: what a function would make of its callbacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from ...recording import Recorder, Recording
from ...stack import jax_compat
from ...stack.core import ThreadRecorder, name_of
from ..record import Listening, environment


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
        whose `outcomes` say for each callback its status, the host calls that a run makes as the
        source reads (`written`) and as compiled (`compiled`), the reason and the advice.

    Raises:
        TypeError: `function` is not callable.
        Exception: whatever tracing or compiling it raises.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> double = jaxcb.pure(lambda x: 2 * x, result="x")
    >>> def f(x):
    ...     double(x)
    ...     return x + 1
    >>> jaxcb.explain(f)(np.float32(3)).outcomes[0].status
    <Status.UNUSED: 'unused'>
    """
    if not callable(function):
        raise TypeError(NOT_CALLABLE.format(function))

    @functools.wraps(function)
    def explained(*args: Any, **kwargs: Any) -> Recording:
        __tracebackhide__ = True
        if isinstance(function, _JITTED):
            jitted: Any = function
            return _compiled(lambda: jitted.lower(*args, **kwargs))
        return asked(function, args, kwargs)[0]

    return explained


_JITTED = type(jax.jit(len))
NOT_CALLABLE = (
    "cannot explain {!r}: it is not a function. Write jaxcb.explain(f)(x), with the function first "
    "and its arguments after it."
)


class Asked(NamedTuple):
    """A function of arrays, and what it would be called with.

    Attributes:
        function: of as many arrays as there are `values`.
        values: arrays, numbers or ``jax.ShapeDtypeStruct``.
    """

    function: Callable[..., Any]
    values: Sequence[Any]

    def compile(self) -> Recording:
        """What XLA makes of it under ``jax.jit``."""
        return _compiled(lambda: jax.jit(self.function).lower(*self.values))


def _compiled(lower: Callable[[], Any]) -> Recording:
    """What XLA makes of a program that nothing known of before goes into."""
    recorder = Recorder()
    # What JAX lowers is looked at while anybody listens.
    with Listening(), ThreadRecorder(recorder), jax_compat.fresh_caches(), jax.disable_jit(False):
        lowered = lower()
        lowered.compile()
        jax_compat.drop_executable(lowered)
    return recorder.freeze(environment=environment(), ahead=True)


def asked(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Recording, Asked]:
    """Compiles `function` for arguments; with it comes what was compiled.

    Numbers are JAX's, as for ``jax.jit``, unless the function wants them as they are: those that a
    jitted function takes as static, or that an ``if`` asks for.
    """
    __tracebackhide__ = True
    for wanted in _AS_THEY_ARE[:-1]:
        call = of_arrays(function, args, kwargs, wanted)
        try:
            return call.compile(), call
        except (TypeError, ValueError):
            if not any(isinstance(x, bool | int | float | complex) for x in _leaves(args, kwargs)):
                raise
    call = of_arrays(function, args, kwargs, _AS_THEY_ARE[-1])
    return call.compile(), call


# Which Python numbers go in as they are, tried one after the other.
_AS_THEY_ARE: tuple[tuple[type, ...], ...] = ((), (bool,), (bool, int), (bool, int, float, complex))


def of_arrays(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    as_they_are: tuple[type, ...],
) -> Asked:
    """`function` with its arrays left open, and its numbers but those of some types."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if _is_open(leaf, as_they_are)]

    def call(*values: Any) -> Any:
        whole = list(leaves)
        for place, value in zip(places, values, strict=True):
            whole[place] = value
        args, kwargs = jax.tree.unflatten(tree, whole)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name_of(function)
    return Asked(call, [leaves[place] for place in places])


def _leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    return jax.tree.leaves((args, kwargs))


def _is_open(leaf: Any, as_they_are: tuple[type, ...]) -> bool:
    if isinstance(leaf, type):  # a dtype, np.float16
        return False
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return True
    return isinstance(leaf, bool | int | float | complex) and type(leaf) not in as_they_are
