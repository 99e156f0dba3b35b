"""The debug flavor: observes values, returns nothing and does not affect gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ... import jax_compat
from ..call import HostCallback, HostFunction
from ..lowering import lower_host_call, lower_once
from ..options import Options, checked
from ._bind import bind_silent_call
from ._eager import eager, effect_of_order, raise_itself
from ._vmap import batch_host_call, refuse_names

debug_callback_p = jax_compat.Primitive("jaxcb_debug_callback")
debug_callback_p.multiple_results = True


def _abstract_eval(
    *avals: Any, callback: HostCallback, **params: Any
) -> tuple[list, set[jax_compat.Effect]]:
    # JAX's own effect objects: they are registered for loops, remat, custom derivatives and
    # partial evaluation, and our ordered prints keep one order with JAX's.
    return [], {jax_compat.jax_effect("debug", callback.options.ordered)}


def _impl(*args: Any, callback: HostCallback, **params: Any) -> list[Any]:
    return eager(
        debug_callback_p, *args, callback=callback, effect=effect_of_order(callback),
        fail=raise_itself, **params,
    )  # fmt: skip


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list, list]:
    return debug_callback_p.bind(*primals, **params), []


def _transpose(cotangents: Any, *args: Any, **params: Any) -> list[None]:
    return [None for _ in args]


def _batch(args: Any, dims: Any, *, callback: HostCallback, axis_name: str, **params: Any) -> Any:
    __tracebackhide__ = True
    method = callback.options.vmap_method
    return batch_host_call(
        debug_callback_p, args, dims, method=method, callback=callback, axis_name=axis_name,
        **params,
    )  # fmt: skip


def _partial_eval_custom(
    saveable: Any, unknown: Sequence[bool], instantiated: Sequence[bool], eqn: Any
) -> Any:
    """Keep the call in the forward pass, the backward pass or both, as the remat policy says.

    Returns:
        As JAX expects: the equation for the known side, the one for the staged side, which outputs
        are unknown and instantiated (there are none), and the residuals.
    """
    if any(unknown):
        residuals = [v for v, on in zip(eqn.invars, instantiated, strict=True) if not on]
        return None, eqn, [], [], residuals
    saved = saveable(debug_callback_p, *[v.aval for v in eqn.invars], **eqn.params)
    # Under vmap JAX binds one slice for each element, and the policy saves these slices; so a
    # batched call counts as saved but not instantiated.
    if saved and (eqn.params["levels"] or not all(instantiated)):
        return eqn, None, [], [], []
    return eqn, eqn, [], [], []


def _lower(ctx: Any, *operands: Any, callback: HostCallback, levels: Any, **params: Any) -> Any:
    automatic = jax_compat.automatic_axes(ctx)
    if automatic:  # gather the operands along these axes, and call from one device
        params |= dict(callback=callback, levels=levels)
        bind = functools.partial(debug_callback_p.bind, **params)
        return lower_once(ctx, automatic, bind, operands)
    return lower_host_call(
        ctx,
        *operands,
        callback=callback,
        levels=levels,
        has_side_effect=True,
        ordered=effect_of_order(callback),
    )


debug_callback_p.def_effectful_abstract_eval(_abstract_eval)
debug_callback_p.def_impl(_impl)
jax_compat.ad.primitive_jvps[debug_callback_p] = _jvp
jax_compat.ad.primitive_transposes[debug_callback_p] = _transpose
jax_compat.register_batching(debug_callback_p, _batch)
jax_compat.stay_in_loops(debug_callback_p)
jax_compat.partial_eval_jaxpr_custom_rules[debug_callback_p] = _partial_eval_custom
jax_compat.leaves_references_as_they_are(debug_callback_p)
jax_compat.mlir.register_lowering(debug_callback_p, _lower, cacheable=False)  # as in _pure.py


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
        jax_compat.hold_finished_elements(debug_callback_p)
    bind_silent_call(debug_callback_p, host, args, kwargs, options, mask=mask)


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    vmap_method: str | None = "sequential",
    arrays: str = "numpy",
    queued: bool = False,
    on_full: str = "wait",
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
        "debug", vmap_method=vmap_method, ordered=ordered, partitioned=partitioned, arrays=arrays,
        queued=queued, on_full=on_full,
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
