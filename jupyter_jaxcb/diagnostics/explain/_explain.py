"""Compile a function without running it, and report the status of its callbacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from ... import jax_compat
from ...recording import Recorder, Recording
from ...stack.call import name_of
from ...stack.trace import ThreadRecorder
from ..record import Listening, environment


def explain(function: Callable[..., Any]) -> Callable[..., Recording]:
    """Report what ``jax.jit`` would make of each callback in `function`, without running it.

    The function is traced, lowered and compiled as by ``jax.jit``. No program runs and no host
    function is called. It may be transformed (``jax.grad(f)``, ``jax.vmap(f)``) or jitted itself.
    Numbers of calls that depend on data are unknown.

    Args:
        function: the function to explain.

    Returns:
        A function that takes the arguments of `function`. Arrays may be given as
        ``jax.ShapeDtypeStruct``; arguments that are neither arrays nor numbers are passed
        unchanged. It returns a `Recording` with `ahead` set. Its `outcomes` have, for each
        callback, the status, the reason, and the number of host calls per run in the program text
        (`written`) and as compiled (`compiled`).

    Raises:
        TypeError: `function` is not callable.
        RuntimeError: this version of JAX is not supported.
        Exception: any error of tracing or compiling it.

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
        return compile_call(function, args, kwargs)[0]

    return explained


_JITTED = type(jax.jit(len))
NOT_CALLABLE = (
    "cannot explain {!r}: it is not a function. Write jaxcb.explain(f)(x): pass the function "
    "first, then its arguments."
)


class ArrayCall(NamedTuple):
    """A call of a function that takes only arrays.

    Attributes:
        function: takes as many arrays as there are `values`.
        values: arrays, numbers or ``jax.ShapeDtypeStruct``.
    """

    function: Callable[..., Any]
    values: Sequence[Any]

    def compile(self) -> Recording:
        """Compile it under ``jax.jit``."""
        return _compiled(lambda: jax.jit(self.function).lower(*self.values))


def _compiled(lower: Callable[[], Any]) -> Recording:
    """Lower and compile a program without using JAX's caches, and return its outcomes."""
    if reason := jax_compat.why_off("statuses"):
        raise RuntimeError(f"cannot explain programs: {reason}")
    recorder = Recorder()
    # The hooks that inspect lowered programs are active only while something is recorded.
    with Listening(), ThreadRecorder(recorder), jax_compat.fresh_caches(), jax.disable_jit(False):
        lowered = lower()
        lowered.compile()
        jax_compat.drop_executable(lowered)
    return recorder.freeze(environment=environment(), ahead=True)


def compile_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Recording, ArrayCall]:
    """Compile a call of `function`; return its recording, and the call with arrays only.

    Python numbers are traced, as by ``jax.jit``, unless the function needs their values: as static
    arguments of a jitted function, or in an ``if``.
    """
    __tracebackhide__ = True
    for static in _STATIC[:-1]:
        call = array_call(function, args, kwargs, static)
        try:
            return call.compile(), call
        except (TypeError, ValueError):
            leaves = jax.tree.leaves((args, kwargs))
            if not any(isinstance(x, bool | int | float | complex) for x in leaves):
                raise
    call = array_call(function, args, kwargs, _STATIC[-1])
    return call.compile(), call


# The types of Python numbers that are passed unchanged, tried one after the other.
_STATIC: tuple[tuple[type, ...], ...] = ((), (bool,), (bool, int), (bool, int, float, complex))


def array_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static: tuple[type, ...],
) -> ArrayCall:
    """Return a call of arrays and numbers only, with numbers of the types in `static` fixed."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if _is_traced(leaf, static)]

    def call(*values: Any) -> Any:
        whole = list(leaves)
        for place, value in zip(places, values, strict=True):
            whole[place] = value
        args, kwargs = jax.tree.unflatten(tree, whole)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name_of(function)
    return ArrayCall(call, [leaves[place] for place in places])


def _is_traced(leaf: Any, static: tuple[type, ...]) -> bool:
    if isinstance(leaf, type):  # a dtype such as np.float16
        return False
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return True
    return isinstance(leaf, bool | int | float | complex) and type(leaf) not in static
