"""The debug flavor: observes values, returns nothing and does not affect gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ... import jax_compat
from ..call import HostFunction
from ..lowering import lower_once
from ..options import Options, checked
from ._bind import bind
from ._eager import raise_itself
from ._flavor import Ordered
from ._vmap import refuse_names


class Debug(Ordered):
    """Observes values: keeps every call, and takes no part in derivatives."""

    name = "debug"
    fail = staticmethod(raise_itself)
    by_value = False  # its arguments may be anything, also what has no hash

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> tuple[list, list]:
        """Call with the primal values."""
        return self.primitive.bind(*primals, **params), []

    def transpose(self, cotangents: Any, *args: Any, **params: Any) -> list[None]:
        """Make no call."""
        return [None for _ in args]

    def partial_eval(
        self, saveable: Any, unknown: Sequence[bool], instantiated: Sequence[bool], eqn: Any
    ) -> Any:
        """Keep the call in the forward pass, the backward pass or both, as the remat policy says.

        Returns:
            As JAX expects: the equation for the known side, the one for the staged side, which
            outputs are unknown and instantiated (there are none), and the residuals.
        """
        if any(unknown):
            residuals = [v for v, on in zip(eqn.invars, instantiated, strict=True) if not on]
            return None, eqn, [], [], residuals
        saved = saveable(self.primitive, *[v.aval for v in eqn.invars], **eqn.params)
        is_repeated = eqn.params["callback"].options.rematerialize and all(instantiated)
        # Under vmap JAX binds one slice for each element, and the policy saves these slices; so a
        # batched call counts as saved but not instantiated. JAX takes its marker for the contrary
        # of saved, which some policies return, as true.
        has_slices = eqn.params["levels"] and type(saved).__name__ != "RecomputeType"
        if saved and (has_slices or not is_repeated):
            return eqn, None, [], [], []
        return eqn, eqn, [], [], []

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        """Gather operands on automatic mesh axes, and call from one device."""
        automatic = jax_compat.automatic_axes(ctx)
        if automatic:
            return lower_once(
                ctx, automatic, functools.partial(self.primitive.bind, **params), operands
            )
        return super().lower(ctx, *operands, **params)


DEBUG = Debug()
jax_compat.leaves_references_as_they_are(DEBUG.primitive)


def bind_debug(
    host: HostFunction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    *,
    mask: Any = None,
) -> None:
    """Bind one call of a debug callback, made where the mask, a boolean scalar, is true."""
    __tracebackhide__ = True
    refuse_names(options, host.name)
    if options.ordered:
        jax_compat.hold_finished_elements(DEBUG.primitive)
    bind(DEBUG, host, args, kwargs, options, mask=mask)


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    vmap_method: str | None = "sequential",
    arrays: str = "numpy",
    queued: bool = False,
    on_full: str = "wait",
    rematerialize: bool = True,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Call a Python function that observes values; the signature is that of `jax.debug.callback`.

    There are two forms: ``debug_callback(f, x, ordered=True)``, and
    ``debug_callback(ordered=True)(f, x)``, which leaves every keyword to the host function. How
    often it is called: see `jupyter_jaxcb.debug`.

    Args:
        callback: the host function. Arrays arrive as read-only NumPy arrays of the traced shapes
            and dtypes; other arguments (strings, objects) are passed through unchanged. Its return
            value is ignored.
        *args: positional arguments of `callback`.
        ordered: keep program order among all ordered debug callbacks, on one device only.
        partitioned: under jit over several devices, call once on each device with its shard.
        vmap_method: how vmap calls it, see `jupyter_jaxcb.debug`.
        arrays: the arrays that the host function gets: ``"numpy"``, or ``"jax"`` for JAX arrays on
            the local CPU, as with JAX's own callbacks. ``"jax"`` is slower, and can deadlock where
            JAX's callbacks can.
        queued: do not wait for the calls, see `jupyter_jaxcb.debug`.
        on_full: ``"wait"`` or ``"drop"``, see `jupyter_jaxcb.debug`.
        rematerialize: whether `jax.checkpoint` calls again where it recomputes, as JAX does.
        **kwargs: keyword arguments of `callback`.

    Returns:
        None; in the second form without `callback`, a function that takes it.

    Raises:
        TypeError: if `callback` is not callable, or the options' call of the second form has
            arguments too.
        ValueError: if `vmap_method` is unknown, or passes whole batches and ``ordered=True`` or
            ``partitioned=True``.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> f = jax.jit(lambda x: jaxcb.debug_callback(print, "x is", x))
    >>> f(np.float32(2)), jax.effects_barrier()
    x is 2.0
    (None, None)
    """
    __tracebackhide__ = True
    options = checked(
        "debug", drop_in=True, vmap_method=vmap_method, ordered=ordered, partitioned=partitioned,
        arrays=arrays, queued=queued, on_full=on_full, rematerialize=rematerialize,
    )  # fmt: skip
    if callback is None:
        if args or kwargs:
            raise TypeError(
                "debug_callback received unexpected arguments in the two-call form:"
                f" {args=} {kwargs=}"
            )
        return lambda function, *args, **kwargs: _debug_callback(function, args, kwargs, options)
    _debug_callback(callback, args, kwargs, options)
    return None


def _debug_callback(
    callback: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options
) -> None:
    __tracebackhide__ = True
    if not callable(callback):
        raise TypeError(
            "first argument to debug_callback must be callable, "
            f"but got an object of type {type(callback)}"
        )
    bind_debug(HostFunction(callback), args, kwargs, options)
