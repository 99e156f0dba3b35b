"""The decorator of the tap flavor: a host function that looks at what passes by."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from ..core import Options, check_leaves, register
from ..flavors.taps import bind_tap
from ._callback import Callback, check_function


@dataclasses.dataclass(frozen=True)
class TapOptions(Options):
    """How a tap is called: whether with what transformations have done to the value."""

    transforms: bool = False


def tap(function: Callable[..., Any]) -> Callback:
    """Registers a host function that looks at a value and lets it pass; works as a decorator.

    ``f(x)`` is `x`, and the host function sees it, whenever the program comes by, in program order
    with all other taps. Under vmap it is one call with the whole batch, under differentiation it
    sees the primal value: `jupyter_jaxcb.host_callback.id_tap`.

    Args:
        function: called with the value in numpy arrays; with a second parameter also with
            `transforms`, a tuple of what vmap and transpose have done to it, innermost first:
            ``("batch", {"batch_dims": (0,)})``. What it returns is ignored; an exception is logged,
            and raised by `jupyter_jaxcb.host_callback.barrier_wait`.

    Returns:
        A `Callback`: call it in JAX code with one pytree of arrays, which it returns.

    Raises:
        TypeError: `function` is not callable.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.tap
    ... def show(x, transforms):
    ...     print("saw", x, transforms)
    >>> y = jax.vmap(lambda x: show(x) + 1)(np.arange(3))
    saw [0 1 2] (('batch', {'batch_dims': (0,)}),)
    """
    __tracebackhide__ = True
    check_function(function, "tap")
    options = TapOptions(_takes_transforms(function))
    host = register(function, ("tap", options))

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        if len(args) != 1 or kwargs:
            given = ", ".join(
                [*(type(x).__name__ for x in args), *(f"{key}=..." for key in kwargs)]
            )
            raise TypeError(
                f"{host.name} is a tap and takes one argument, which it returns, but got "
                f"({given}). Pass several arrays as one tuple or dict."
            )
        check_leaves(args[0], host.name)
        return bind_tap(host, args[0], with_transforms=options.transforms)

    return Callback("tap", function, host, bind, options)


def _takes_transforms(function: Callable[..., Any]) -> bool:
    """Whether it has a second positional parameter: one without default, or of that name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C, and says nothing
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    if len(places) < 2:
        return False
    return places[1].default is places[1].empty or places[1].name == "transforms"
