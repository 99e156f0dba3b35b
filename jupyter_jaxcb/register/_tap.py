"""The ``tap`` decorator: a host function observes a value that passes through."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from ..stack.call import check_leaves, register
from ..stack.flavors.taps import bind_tap
from ..stack.options import Options, checked
from ._callback import Callback, check_function
from ._two_forms import in_two_forms, with_function


@in_two_forms
def tap(function: Callable[..., Any] | None = None, *, rematerialize: bool = True) -> Callback:
    """Register a host function that observes a value and passes it on; works as a decorator.

    ``f(x)`` returns `x`, and calls the host function with it, in program order with all other taps.
    Under vmap one call gets the whole batch, with the batch axes in front, outermost first; a leaf
    that is not batched keeps its shape. Under differentiation the call gets the primal value. This
    is `jupyter_jaxcb.host_callback.id_tap` as a decorator, except that there the batch axes stay
    where the program has them.

    JAX and XLA keep every call that the program makes, in loops and under grad, even if the result
    is unused. There are two exceptions:

    * A tap of a pytree without arrays (``f(())``) in a scan under grad, vjp or linearize is
      hoisted, so it runs once, before the loop.
    * A tap in a `jax.checkpoint` whose results are unused, if its value depends on no array from
      outside: JAX removes both.

    Args:
        function: called with the value as NumPy arrays. A second positional parameter that has no
            default, is named `transforms`, or is ``*args``, gets a tuple of the transformations
            applied to the value, innermost first: ``("batch", {"batch_dims": (0, None)})`` for
            vmap, with 0 for a batched leaf and None for another, and ``("transpose", {})`` for
            transposition. Its return value is ignored; an exception is logged, and the program
            goes on. Only `jupyter_jaxcb.host_callback.barrier_wait` raises it, not
            `jax.effects_barrier`; if it is not called, Python logs the exception again when it
            ends.
        rematerialize: whether it is called again where a `jax.checkpoint` recomputes values.

    Returns:
        A `Callback`. Call it in JAX code with one pytree of arrays, which it returns.

    Raises:
        TypeError: if `function` is not callable.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.tap
    ... def show(x, transforms):
    ...     print("saw", x, transforms)
    >>> y = jax.vmap(lambda x: show(x) + 1)(np.arange(3))
    saw [0 1 2] (('batch', {'batch_dims': (0,)}),)
    """
    __tracebackhide__ = True
    return with_function(function, _register_tap, checked("tap", rematerialize=rematerialize))


def _register_tap(function: Any, options: Options) -> Callback:
    __tracebackhide__ = True
    check_function(function, "tap")
    options = dataclasses.replace(options, transforms=_takes_transforms(function))
    host = register(function, options)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        if len(args) != 1 or kwargs:
            given = ", ".join(
                [*(type(x).__name__ for x in args), *(f"{key}=..." for key in kwargs)]
            )
            raise TypeError(
                f"the tap {host.name} takes one argument, but got ({given}). Pass several arrays "
                "as one tuple or dict."
            )
        check_leaves(args[0], host.name)
        return bind_tap(host, args[0], options, axes_in_front=True)

    return Callback(function, host, bind, options)


def _takes_transforms(function: Callable[..., Any]) -> bool:
    """Return whether it has a second positional parameter that is required or named transforms."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a C function without a signature
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    if len(places) < 2:
        return False
    return places[1].default is places[1].empty or places[1].name == "transforms"
