"""Emit the custom call through which XLA calls Python, or what a capability has in its place."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from ... import jax_compat
from ...recording import VmapLevel
from ..call import HostCallback
from ._sub_byte import IS_SOUND, in_whole_bytes

DIRECT = {"cpu": "cpu", "cuda": "gpu", "rocm": "gpu"}  # platform -> XLA's custom call
if jax.__version_info__ >= (0, 12):  # JAX's own callbacks refuse it before
    DIRECT["oneapi"] = "gpu"
FFI_TARGET = "xla_ffi_python_{}_callback"
HOST_MEMORY = {"cpu"}  # platforms whose memory NumPy can access


def emit_call(
    ctx: Any,
    call: Callable[..., tuple],
    operands: Sequence[Any],
    *,
    token: Any = None,
    has_side_effect: bool,
    partitioned: bool = False,
    sharding: Any = None,
    guard: Callable[[Callable[..., tuple]], Callable[..., tuple]] | None = None,
) -> list[Any]:
    """Emit one custom call of `call` with the avals of `ctx`.

    Args:
        ctx: JAX's lowering context.
        call: takes NumPy arrays and returns a tuple of NumPy arrays; runs on XLA's threads.
        operands: IR values.
        token: the token of an ordered call; None for an unordered one.
        has_side_effect: whether XLA must keep the call even if its results are unused.
        partitioned: whether each device passes its own shard.
        sharding: an op sharding, see `jax_compat.callback_sharding`.
        guard: wraps the function with the token; `call` itself has a guard already.

    Returns:
        The new token (None if `token` is None), then the IR values of the results.
    """
    module = ctx.module_context
    has_results = bool(ctx.avals_out)
    back: Callable[[Sequence[Any]], list[Any]] = list
    if not IS_SOUND:
        ctx, call, operands, back = in_whole_bytes(ctx, call, operands)
    called = call
    if token is not None:
        # The token is the first operand and result; `call` never gets it.
        def called(token: Any, *arrays: np.ndarray) -> tuple[Any, ...]:
            return (token, *call(*arrays))

        called = called if guard is None else guard(called)
        operands = [token, *operands]
        sharding = _with_token(sharding, has_results)
        # A copy, because JAX reads tokens_out from the original context, which must not change.
        ctx = dataclasses.replace(
            ctx,
            avals_in=[jax_compat.abstract_token, *ctx.avals_in],
            avals_out=[jax_compat.abstract_token, *ctx.avals_out],
        )
    index = len(module.host_callbacks)
    module.add_host_callback(called)
    op = emit_call_of(
        ctx, index, operands, has_side_effect=has_side_effect, partitioned=partitioned,
        sharding=sharding,
    )  # fmt: skip
    first, *results = op.results if token is not None else (None, *op.results)
    return [first, *back(results)]


def emit_call_of(
    ctx: Any,
    index: int,
    operands: Sequence[Any],
    *,
    has_side_effect: bool,
    partitioned: bool = False,
    sharding: Any = None,
) -> Any:
    """Emit the custom call of the host function that has `index` in the program; return the op."""
    platform = DIRECT[ctx.module_context.platforms[0]]
    target = f"xla_ffi{'_partitioned' * partitioned}_python_{platform}_callback"
    op = jax_compat.build_ffi_lowering_function(target, has_side_effect=has_side_effect)(
        ctx, *operands, index=np.uint64(index)
    )
    if sharding is not None:
        jax_compat.set_sharding(ctx, op, sharding)
    return op


def _with_token(sharding: Any, has_results: bool) -> Any:
    """Add an annotation for the token: Shardy requires exactly one for each result of the op."""
    shardings = getattr(sharding, "shardings", None)
    if shardings is None or not has_results:
        return sharding
    first = shardings[0]
    token = type(first)(
        mesh_shape=(), dim_shardings=(), logical_device_ids=first.logical_device_ids
    )
    return type(sharding)((token, *shardings))


def zeros(avals: Sequence[Any]) -> list[Any]:
    """Return the empty results of a call without batch elements."""
    return [jax_compat.mlir.ir_constant(np.zeros(aval.shape, aval.dtype)) for aval in avals]


def set_token(ctx: Any, ordered: Any, token: Any) -> None:
    """Let the next call with the effect `ordered` wait for `token`."""
    tokens = jax_compat.TokenSet({ordered: token})
    ctx.set_tokens_out(ctx.tokens_in.update_tokens(tokens))


class Lower(Protocol):
    """Emits the operations through which XLA calls the host function; returns their IR values.

    Its arguments are those of `lower_host_call`.
    """

    def __call__(
        self,
        ctx: Any,
        *operands: Any,
        callback: HostCallback,
        levels: tuple[VmapLevel, ...],
        has_side_effect: bool,
        ordered: jax_compat.Effect | None = None,
    ) -> Sequence[Any]: ...


def other_way(callback: HostCallback, levels: Sequence[VmapLevel]) -> Lower | None:
    """Return what lowers a bind in another way; None if XLA calls Python."""
    for row in callback.options.capabilities:
        if row.lower is not None:
            return row.lower(callback, levels)
    return None
