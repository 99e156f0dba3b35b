"""The tap flavor: an identity that calls the host; under vmap one call gets the whole batch."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax.tree_util import tree_structure, tree_unflatten

from .... import jax_compat
from ....recording import WHOLE_BATCH, VmapLevel
from ...call import HostFunction, to_array
from ...dispatch import Build
from ...lowering import lower_host_call
from ...options import Options
from .. import bind_passing_call, eager, with_axes_in_front
from ._barrier import barrier_at_exit, counted
from ._effect import (
    DEVICE,
    TAP,
    TRANSFORMS,
    building,
    placed,
    raise_as_flagged,
    recomputing,
    wait_for_earlier_taps,
)
from ._flags import flags

# The transformations of a tap, innermost first: the name, and for vmap the batch dimensions of the
# operands.
Transforms = tuple[tuple[str, tuple[int | None, ...] | None], ...]

tap_p = jax_compat.Primitive("jaxcb_tap_callback")
tap_p.multiple_results = True


def _abstract_eval(*avals: Any, **params: Any) -> tuple[list[Any], set[jax_compat.Effect]]:
    # Unlike debug callbacks, a tap returns its operands: transposition needs outputs.
    return list(avals), {TAP}


def _impl(*args: Any, transforms: Transforms, device_index: int, **params: Any) -> list[Any]:
    __tracebackhide__ = True
    wait_for_earlier_taps()
    outs = eager(
        tap_p,
        *args,
        fail=raise_as_flagged,
        build=_build(transforms, device_index, eager=True),
        transforms=transforms,
        device_index=device_index,
        **params,
    )
    return outs or [to_array(x) for x in args]


def _build(transforms: Transforms, device_index: int, *, eager: bool) -> Build:
    passed = tuple(
        (name, {} if dims is None else {"batch_dims": dims}) for name, dims in transforms
    )
    at_once = flags.raise_at_once or (eager and flags.jax_host_callback_inline)
    return building(functools.partial(counted, postpone=not at_once), device_index, passed)


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
    return tap_p.bind(*primals, **params), list(tangents)


def _transpose(
    cotangents: Sequence[Any], *args: Any, transforms: Transforms, **params: Any
) -> list[Any]:
    linear = [jax_compat.ad.is_undefined_primal(x) for x in args]
    given = [
        jax_compat.ad.instantiate_zeros(cotangent) if on else jnp.zeros_like(x)
        for cotangent, x, on in zip(cotangents, args, linear, strict=True)
    ]
    outs = tap_p.bind(*given, transforms=(*transforms, ("transpose", None)), **params)
    return [out if on else None for out, on in zip(outs, linear, strict=True)]


def _batch(
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    transforms: Transforms,
    levels: tuple[VmapLevel, ...],
    axes_in_front: bool,
    axis_name: str,
    **params: Any,
) -> Any:
    (size,) = {x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None}
    batched = tuple(dim is not None for dim in dims)
    if axes_in_front:
        args, dims = with_axes_in_front(args, dims), [0 if on else None for on in batched]
    outs = tap_p.bind(
        *args,
        transforms=(*transforms, ("batch", tuple(dims))),
        levels=(*levels, VmapLevel(size, WHOLE_BATCH, batched, axis_name)),
        axes_in_front=axes_in_front,
        **params,
    )
    return outs, dims


def _lower(
    ctx: Any,
    *operands: Any,
    callback: Any,
    levels: Any,
    transforms: Transforms,
    device_index: int,
    **params: Any,
) -> Sequence[Any]:
    silent = dataclasses.replace(ctx, avals_out=[])  # the host call returns nothing
    lower_host_call(
        silent,
        *operands,
        callback=callback,
        levels=levels,
        has_side_effect=True,
        ordered=TAP,
        device=placed(ctx, device_index),
        build=_build(transforms, device_index, eager=False),
    )
    ctx.set_tokens_out(silent.tokens_out)
    return operands


tap_p.def_effectful_abstract_eval(_abstract_eval)
tap_p.def_impl(_impl)
jax_compat.ad.primitive_jvps[tap_p] = _jvp
jax_compat.ad.primitive_transposes[tap_p] = _transpose
jax_compat.register_batching(tap_p, _batch)
jax_compat.partial_eval_jaxpr_custom_rules[tap_p] = recomputing(tap_p)
jax_compat.stay_in_loops(tap_p)
jax_compat.mlir.register_lowering(tap_p, _lower, cacheable=False)  # as in _pure.py


def bind_tap(
    host: HostFunction,
    arg: Any,
    options: Options,
    *,
    with_device: bool = False,
    device_index: int = 0,
    axes_in_front: bool = False,
) -> Any:
    """Bind one tap.

    Args:
        host: the host function.
        arg: a pytree of arrays, passed as NumPy arrays.
        options: the options of the callback.
        with_device: whether the host function gets the keyword ``device``.
        device_index: see `host_callback.id_tap`.
        axes_in_front: whether batch axes come first, outermost first; else they stay where the
            program has them.

    Returns:
        `arg` as JAX arrays.
    """
    __tracebackhide__ = True
    barrier_at_exit()
    jax_compat.hold_finished_elements(tap_p)
    outs = bind_passing_call(
        tap_p,
        host,
        (arg, TRANSFORMS) if options.transforms else (arg,),
        {"device": DEVICE} if with_device else {},
        options,
        transforms=(),
        device_index=device_index,
        axes_in_front=axes_in_front,
    )
    return tree_unflatten(tree_structure(arg), outs)
