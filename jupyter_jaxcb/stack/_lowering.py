"""The single place where a program gains a host call."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..recording import Aval, LoweredSite, Program, VmapLevel, active
from . import _jax, _programs
from ._callback import HostCallback
from ._dispatch import Crossing, build_crossing

_DIRECT = {"cpu": "cpu", "cuda": "gpu", "rocm": "gpu"}  # platform -> XLA's custom call


def lower_host_call(
    ctx: Any,
    *operands: Any,
    callback: HostCallback,
    levels: tuple[VmapLevel, ...],
    has_side_effect: bool,
    ordered: _jax.Effect | None = None,
    partitioned: bool = False,
    sharding: Any = None,
) -> Sequence[Any]:
    """Emits the custom call through which XLA calls the host function.

    XLA hands it plain read-only numpy arrays; nothing of JAX runs on the way.

    Args:
        ctx: JAX's lowering context.
        *operands: IR values.
        callback: the host function.
        levels: the vmaps it went through.
        has_side_effect: whether XLA must keep the call even if its results are unused.
        ordered: the ordered effect whose token the call takes and returns, if any.
        partitioned: each device hands over its own shard.
        sharding: an op sharding, see `_jax.callback_sharding`.

    Returns:
        The IR values of the results.
    """
    platforms = ctx.module_context.platforms
    if len(platforms) > 1:
        raise NotImplementedError(
            f"cannot lower {callback} for several platforms at once ({', '.join(platforms)}): a "
            "host callback belongs to one process. Lower for one platform."
        )
    if ordered is not None and _jax.lowers_predicate_that_goes_wrong():
        raise NotImplementedError(
            f"cannot vmap a while loop that calls the ordered {callback} in its predicate: JAX "
            "would go on with lanes that have finished, and answer wrong numbers. Drop "
            "ordered=True, or call it in the body."
        )
    lowered = _note(ctx, callback, levels)
    if lowered.lanes == 0:
        # No lane, no call; a crossing would keep alive what only this call needs.
        if ordered is not None:
            ctx.set_tokens_out(ctx.tokens_in)
        return [_jax.empty_constant(aval) for aval in ctx.avals_out]
    cross = build_crossing(
        callback,
        lowered,
        [aval.dtype for aval in ctx.avals_in],
        [aval.dtype for aval in ctx.avals_out],
    )
    token = ctx.tokens_in.get(ordered) if ordered is not None else None
    if platforms[0] not in _DIRECT:
        return _emit_by_jax(ctx, cross, token, operands, ordered, has_side_effect, sharding)
    return _emit(ctx, cross, token, operands, ordered, has_side_effect, partitioned, sharding)


def _note(ctx: Any, callback: HostCallback, levels: tuple[VmapLevel, ...]) -> LoweredSite:
    """Tells who listens that a site goes into a program."""
    lowered = LoweredSite(
        site=callback.bind.site,
        program=Program(_jax.program_name(ctx), ctx.module_context.platforms[0]),
        index=len(ctx.module_context.host_callbacks),
        operands=tuple(to_aval(aval) for aval in ctx.avals_in),
        results=tuple(to_aval(aval) for aval in ctx.avals_out),
        levels=levels,
        version=callback.host.version,
    )
    _programs.lowered(callback.bind)
    recorder = active()
    if recorder is not None:
        recorder.lowered(lowered)
    return lowered


def to_aval(aval: Any) -> Aval:
    """The aval of anything with shape and dtype, as a recorded fact."""
    return Aval(tuple(aval.shape), _name(aval.dtype))


_name = functools.cache(str)  # of a dtype; numpy composes it anew every time


def _emit(
    ctx: Any,
    cross: Crossing,
    token: Any,
    operands: Sequence[Any],
    ordered: _jax.Effect | None,
    has_side_effect: bool,
    partitioned: bool,
    sharding: Any,
) -> Sequence[Any]:
    module = ctx.module_context
    target = f"xla_ffi{'_partitioned' * partitioned}_python_{_DIRECT[module.platforms[0]]}_callback"
    has_results = bool(ctx.avals_out)
    call = cross
    if token is not None:
        # The token rides as the first operand and result; the crossing never sees it.
        def call(token: Any, *arrays: np.ndarray) -> tuple[Any, ...]:
            return (token, *cross(*arrays))

        operands = [token, *operands]
        sharding = _jax.with_token_sharding(sharding, has_results)
    # Only the call sees the token's avals: JAX reads tokens_out off the context it gave us.
    emitted = ctx
    if token is not None:
        emitted = dataclasses.replace(
            ctx,
            avals_in=[_jax.abstract_token, *ctx.avals_in],
            avals_out=[_jax.abstract_token, *ctx.avals_out],
        )
    index = np.uint64(len(module.host_callbacks))
    module.add_host_callback(call)
    op = _jax.build_ffi_lowering_function(target, has_side_effect=has_side_effect)(
        emitted, *operands, index=index
    )
    if sharding is not None:
        _jax.set_sharding(ctx, op, sharding)
    results = list(op.results)
    if token is not None:
        _set_token(ctx, ordered, results.pop(0))
    return _jax.free_of_device(ctx, results)


def _emit_by_jax(
    ctx: Any,
    cross: Crossing,
    token: Any,
    operands: Sequence[Any],
    ordered: _jax.Effect | None,
    has_side_effect: bool,
    sharding: Any,
) -> Sequence[Any]:
    """Other platforms (TPU): JAX's documented way, which sends and receives by channels."""
    results, token, _ = _jax.mlir.emit_python_callback(
        ctx,
        cross,
        token,
        list(operands),
        ctx.avals_in,
        ctx.avals_out,
        has_side_effect=has_side_effect,
        sharding=sharding,
    )
    if ordered is not None:
        _set_token(ctx, ordered, token)
    return results


def _set_token(ctx: Any, ordered: Any, token: Any) -> None:
    tokens = _jax.TokenSet({ordered: token})
    ctx.set_tokens_out(ctx.tokens_in.update_tokens(tokens))
