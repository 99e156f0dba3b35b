"""Lower binds of compiled callbacks to a custom call of machine code."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import jax_compat
from ...recording import Note, NoteKind, VmapLevel
from ...stack.call import HostCallback
from ...stack.lowering import Lower, note_call, refuse, set_token, zeros
from ...stack.options import Decides


def lowered_by(callback: HostCallback, levels: Sequence[VmapLevel]) -> Lower | None:
    """Return what lowers to machine code; None for a crossing in Python that calls it.

    The latter gathers the selected batch elements, if one call gets them together, makes the call
    from one device or elsewhere, and looks at what it wrote.
    """
    options = callback.options
    elsewhere = any(row.decides < Decides.WHICH for row in options.capabilities)
    gathers = callback.varies and levels and not any(level.looped for level in levels)
    by_python = gathers or elsewhere or options.sharding is not None or options.check
    return None if by_python else _lower


def note(callback: HostCallback, platform: str, levels: Sequence[VmapLevel]) -> Note | None:
    """Note that calls are made in machine code, where they are."""
    return Note(NoteKind.COMPILED) if lowered_by(callback, levels) else None


def _lower(
    ctx: Any,
    *operands: Any,
    callback: HostCallback,
    levels: tuple[VmapLevel, ...],
    has_side_effect: bool,
    ordered: jax_compat.Effect | None = None,
) -> Sequence[Any]:
    """Emit the custom call through which XLA calls the compiled host function.

    In a program over several devices each device makes the call, with the whole arrays.

    Raises:
        NotImplementedError: on another platform than the CPU; for export; for a call with side
            effects in a program over several devices.
        TypeError: if numba cannot compile the function for these arguments.
        ResultError: if what it returns does not match the declared result.
    """
    __tracebackhide__ = True
    devices = jax_compat.device_count(ctx)
    _refuse(ctx, callback, has_side_effect, devices)
    refuse(ctx, callback, None)
    times = jax_compat.times_called(ctx, everywhere=True)
    lowered = note_call(ctx, callback, levels, times=times, gathered=devices > 1)
    if lowered.is_empty:
        if ordered is not None:
            ctx.set_tokens_out(ctx.tokens_in)
        return zeros(ctx.avals_out)
    from ._block import block_of  # numba is imported with the first compiled callback

    block = block_of(callback, lowered, ordered=ordered is not None)
    token = ctx.tokens_in.get(ordered) if ordered is not None else None
    token, *results = _emit(ctx, block, operands, token, has_side_effect)
    if ordered is not None:
        set_token(ctx, ordered, token)
    return results


def _emit(
    ctx: Any, block: Any, operands: Sequence[Any], token: Any, has_side_effect: bool
) -> list[Any]:
    """Emit the custom call; return its token, or None, and the IR values of its results."""
    module = ctx.module_context
    index = np.uint64(len(module.host_callbacks))
    module.add_host_callback(block)  # keeps it alive as long as the program
    if token is not None:
        operands = [token, *operands]
        ctx = dataclasses.replace(
            ctx,
            avals_in=[jax_compat.abstract_token, *ctx.avals_in],
            avals_out=[jax_compat.abstract_token, *ctx.avals_out],
        )
    # XLA sorts attributes by name, and the handler reads the first.
    lower = jax_compat.build_ffi_lowering_function(block.target, has_side_effect=has_side_effect)
    op = lower(ctx, *operands, block=np.uint64(block.address), index=index)
    return list(op.results) if token is not None else [None, *op.results]


def _alone(callback: HostCallback) -> str:
    """Return the option with which one device makes the calls."""
    if callback.options.flavor == "io":
        return "with sharding=, the device that makes the call"
    return "without compile="


def _refuse(ctx: Any, callback: HostCallback, has_side_effect: bool, devices: int) -> None:
    __tracebackhide__ = True
    platforms = [one for one in ctx.module_context.platforms if one != "cpu"]
    if platforms:
        raise NotImplementedError(
            f"cannot call the compiled {callback} on {' and '.join(platforms)}: numba "
            "compiles for CPUs. Register it without compile=, or run the program on the CPU: with "
            "jax.default_device(jax.devices('cpu')[0])."
        )
    if has_side_effect and devices > 1:
        raise NotImplementedError(
            f"cannot call the compiled {callback} from a program over several devices: each would "
            "repeat its side effect. Call it in jax.shard_map, once for each shard, or register it "
            f"{_alone(callback)}."
        )
