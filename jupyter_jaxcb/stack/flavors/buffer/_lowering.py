"""Lower a buffer callback to a custom call that writes into XLA's memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .... import jax_compat
from ....recording import LoweredSite, VmapLevel
from ...call import HostCallback
from ...dispatch import CallPlan, Crossing, crossings_by_shard
from ...lowering import DIRECT, HOST_MEMORY, SHARD_NUMBER, note_call, other_way, refuse, zeros
from ._crossing import build_buffer_crossing


def lower_buffer_call(
    ctx: Any, *operands: Any, callback: HostCallback, levels: tuple[VmapLevel, ...]
) -> Sequence[Any]:
    """Emit the custom call through which the host function writes into XLA's memory.

    In a program over several devices each device makes the call, with the whole arrays, as in JAX.
    """
    __tracebackhide__ = True
    options, lower = callback.options, other_way(callback, levels)
    if lower is not None:
        return lower(
            ctx, *operands, callback=callback, levels=levels,
            has_side_effect=options.has_side_effect,
        )  # fmt: skip
    refuse(ctx, callback, None)
    platform = ctx.module_context.platforms[0]
    devices, shards = jax_compat.device_count(ctx), jax_compat.shard_count(ctx)
    _refuse(callback, platform, options.has_side_effect and devices > 1)
    times = jax_compat.times_called(ctx, everywhere=True)
    lowered = note_call(ctx, callback, levels, times=times, gathered=devices > 1)
    if lowered.is_empty:
        return zeros(ctx.avals_out)

    operand_dtypes = [aval.dtype for aval in ctx.avals_in]
    result_dtypes = [aval.dtype for aval in ctx.avals_out]
    on_device = platform not in HOST_MEMORY

    def build(fact: LoweredSite) -> Crossing:
        plan = CallPlan(callback, fact, operand_dtypes, result_dtypes, on_device=on_device)
        return build_buffer_crossing(plan)

    cross, called, given, shift = build(lowered), ctx, operands, 0
    if shards > 1:
        of_shard = crossings_by_shard(lowered, jax_compat.shard_devices(ctx), build)

        def cross(context: Any, number: Any, *buffers: Any) -> Any:
            return of_shard(int(number.__array__()))(context, *buffers)

        called = dataclasses.replace(ctx, avals_in=[SHARD_NUMBER, *ctx.avals_in])
        given, shift = (jax_compat.shard_number(ctx), *operands), 1
    return _emit(
        called,
        cross,
        given,
        has_side_effect=options.has_side_effect,
        aliases={operand + shift: result for operand, result in options.input_output_aliases},
        replayed=options.command_buffer_compatible,
        sharding=jax_compat.callback_sharding(ctx, None, ctx.avals_out) if devices == 1 else None,
    )


def _refuse(callback: HostCallback, platform: str, several: bool) -> None:
    __tracebackhide__ = True
    if platform not in DIRECT:
        raise ValueError(
            f"cannot call {callback}: `buffer_callback` not supported on {platform} backend. "
            "Register it as pure."
        )
    if several:
        raise NotImplementedError(
            f"cannot call {callback} from a program over several devices: each would repeat its "
            "side effect. Call it in jax.shard_map, once for each shard, or register it as io."
        )


def _emit(
    ctx: Any,
    call: Callable[..., tuple],
    operands: Sequence[Any],
    *,
    has_side_effect: bool,
    aliases: Mapping[int, int],
    replayed: bool,
    sharding: Any,
) -> list[Any]:
    """Emit one custom call of `call`, which writes its results into XLA's buffers.

    Args:
        ctx: JAX's lowering context.
        call: takes an execution context, the buffers of the operands, and those of the results.
        operands: IR values.
        has_side_effect: whether XLA must keep the call even if its results are unused.
        aliases: maps the index of an operand to that of the result that shares its memory.
        replayed: on GPUs, run `call` once and replay the work it enqueued.
        sharding: an op sharding, see `jax_compat.callback_sharding`.
    """
    module = ctx.module_context
    kind = DIRECT[module.platforms[0]]
    commands = "_cmd_buffer" if replayed and kind == "gpu" else ""
    index = np.uint64(len(module.host_callbacks))
    module.add_host_callback(call)
    lower = jax_compat.build_ffi_lowering_function(
        f"xla_buffer_python_{kind}_callback{commands}",
        has_side_effect=has_side_effect,
        operand_output_aliases=dict(aliases),
    )
    op = lower(ctx, *operands, index=index)
    if sharding is not None:
        jax_compat.set_sharding(ctx, op, sharding)
    return list(op.results)
