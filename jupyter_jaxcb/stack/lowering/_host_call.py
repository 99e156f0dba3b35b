"""Lower binds to host calls; no other module adds host calls to a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import jax_compat
from ...recording import LoweredSite, VmapLevel
from ..call import HostCallback
from ..dispatch import Build, CallPlan, Crossing, crossing, crossings_by_shard, reporting_interrupts
from ._custom_call import DIRECT, emit_call, other_way, set_token, zeros
from ._facts import note_call
from ._multi_device import emit_for_all
from ._partitioned import by_parts, emit_for_each

SHARD_NUMBER = jax_compat.shaped_array((), np.dtype(np.uint32))  # the index of a shard


def lower_host_call(
    ctx: Any,
    *operands: Any,
    callback: HostCallback,
    levels: tuple[VmapLevel, ...],
    has_side_effect: bool,
    ordered: jax_compat.Effect | None = None,
    device: int | None = None,
    build: Build = crossing,
) -> Sequence[Any]:
    """Emit the custom call through which XLA calls the host function.

    XLA passes read-only NumPy arrays; no JAX code runs during the call.

    Args:
        ctx: JAX's lowering context.
        *operands: IR values.
        callback: the host function.
        levels: the vmap levels around the bind.
        has_side_effect: whether XLA must keep the call even if its results are unused.
        ordered: the ordered effect whose token the call takes and returns, if any.
        device: the index in the program of the device to call from; None: the options say which.
        build: builds the function that XLA calls.

    Returns:
        The IR values of the results.
    """
    __tracebackhide__ = True
    lower = other_way(callback, levels)
    if lower is not None:
        return lower(
            ctx, *operands, callback=callback, levels=levels, has_side_effect=has_side_effect,
            ordered=ordered,
        )  # fmt: skip
    refuse(ctx, callback, ordered)
    partitioned = bool(callback.options.partitioned)
    sharding = callback.options.sharding if device is None else device
    platform = ctx.module_context.platforms[0]
    devices, shards = jax_compat.device_count(ctx), jax_compat.shard_count(ctx)
    lowered = note_call(
        ctx,
        callback,
        levels,
        times=jax_compat.times_called(ctx, everywhere=partitioned, sharding=sharding),
        gathered=devices > 1 and not partitioned,
    )
    if lowered.is_empty:
        # Without batch elements there is no call, and so no crossing to keep alive.
        if ordered is not None:
            ctx.set_tokens_out(ctx.tokens_in)
        return zeros(ctx.avals_out)
    operand_dtypes = [aval.dtype for aval in ctx.avals_in]
    result_dtypes = [aval.dtype for aval in ctx.avals_out]

    def of_fact(fact: LoweredSite) -> Crossing:
        return build(CallPlan(callback, fact, operand_dtypes, result_dtypes))

    if partitioned and devices > 1 and ctx.avals_out:
        return emit_for_each(
            ctx, callback, lowered, of_fact, operands, has_side_effect=has_side_effect
        )
    cross = by_parts(lowered, of_fact) if partitioned and devices > 1 else of_fact(lowered)
    token = ctx.tokens_in.get(ordered) if ordered is not None else None
    if platform not in DIRECT:
        return _emit_by_jax(ctx, cross, token, operands, ordered, has_side_effect, sharding)
    if devices > 1 and not partitioned:
        token, *results = emit_for_all(
            ctx, cross, operands, site=lowered.site, token=token,
            has_side_effect=has_side_effect, sharding=sharding,
        )  # fmt: skip
    else:
        called = ctx
        if shards > 1:
            cross = _by_shard(crossings_by_shard(lowered, jax_compat.shard_devices(ctx), of_fact))
            called = dataclasses.replace(ctx, avals_in=[SHARD_NUMBER, *ctx.avals_in])
            operands = (jax_compat.shard_number(ctx), *operands)
        token, *results = emit_call(
            called, cross, operands, token=token, has_side_effect=has_side_effect,
            partitioned=partitioned and shards == 1,
            sharding=jax_compat.callback_sharding(ctx, sharding, ctx.avals_out),
            guard=lambda call: reporting_interrupts(call, lowered, callback.host),
        )  # fmt: skip
    if ordered is not None:
        set_token(ctx, ordered, token)
    return results


def _by_shard(of_shard: Callable[[int], Crossing]) -> Crossing:
    """Return a crossing that takes the index of its shard as the first argument."""

    def cross(number: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return of_shard(int(number))(*arrays)

    return cross


def _instead_of_exporting(callback: HostCallback) -> str:
    omit = "xport inside `with jaxcb.disabled():`, which omits it."
    if callback.out_tree is None or not callback.out_tree.num_leaves:
        return f"E{omit}"
    return f"If its result is used, compute it in JAX; else e{omit}"


def refuse(ctx: Any, callback: HostCallback, ordered: jax_compat.Effect | None) -> None:
    """Raise NotImplementedError for programs in which host calls are impossible or incorrect."""
    __tracebackhide__ = True
    platforms = ctx.module_context.platforms
    if jax_compat.is_for_export(ctx):
        raise NotImplementedError(
            f"cannot export {callback}: serialization of host callbacks is not possible, as they "
            f"belong to this process. {_instead_of_exporting(callback)}"
        )
    if len(platforms) > 1:
        raise NotImplementedError(
            f"cannot lower {callback} for several platforms at once ({', '.join(platforms)}). "
            "Lower for one platform at a time."
        )
    if ordered is not None and jax_compat.lowers_broken_predicate():
        raise NotImplementedError(
            f"cannot vmap a while loop that calls the ordered {callback} in its predicate: JAX "
            "would compute wrong results for finished batch elements. Drop ordered=True, or call "
            "it in the body."
        )


def _emit_by_jax(
    ctx: Any,
    cross: Crossing,
    token: Any,
    operands: Sequence[Any],
    ordered: jax_compat.Effect | None,
    has_side_effect: bool,
    sharding: Any,
) -> Sequence[Any]:
    """Emit the call on other platforms (TPU) by JAX's public function, which uses channels."""
    results, token, _ = jax_compat.mlir.emit_python_callback(
        ctx,
        cross,
        token,
        list(operands),
        ctx.avals_in,
        ctx.avals_out,
        has_side_effect=has_side_effect,
        sharding=jax_compat.callback_sharding(ctx, sharding, ctx.avals_out),
    )
    if ordered is not None:
        set_token(ctx, ordered, token)
    return results
