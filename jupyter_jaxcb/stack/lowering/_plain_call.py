"""Emit calls of functions of this package, which return nothing and are never recorded."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ... import jax_compat
from ._custom_call import DIRECT, emit_call, emit_call_of
from ._multi_device import lower_once

Receives = Callable[..., tuple]
_Received = TypeVar("_Received", bound=Receives)


def lower_plain_call(
    ctx: Any, *operands: Any, call: Receives, bind: Callable[..., Any]
) -> Sequence[Any]:
    """Emit one call.

    Args:
        ctx: JAX's lowering context, whose avals_in are those of the operands.
        *operands: IR values.
        call: takes NumPy arrays and returns an empty tuple.
        bind: binds the call again, on operands gathered along the automatic axes of a mesh.
    """
    automatic = jax_compat.automatic_axes(ctx)
    if automatic:
        return lower_once(ctx, automatic, bind, operands)
    sharding = jax_compat.callback_sharding(ctx, None, [])
    ctx = dataclasses.replace(ctx, avals_out=[])
    if ctx.module_context.platforms[0] in DIRECT:
        emit_call(ctx, call, operands, has_side_effect=True, sharding=sharding)
    else:
        jax_compat.mlir.emit_python_callback(
            ctx, call, None, list(operands), ctx.avals_in, [], has_side_effect=True,
            sharding=sharding,
        )  # fmt: skip
    return []


class _Joined:
    """A call in a block, that gets more operands."""

    def __init__(self, block: Any, call: Any) -> None:
        self.block, self.call = block, call
        self.op: Any = None
        self.index = 0
        self.operands: list[Any] = []
        self.avals: list[Any] = []


class _Open(threading.local):
    callbacks: Any = None  # the host functions of the program, which JAX lowers in this thread
    calls: tuple[_Joined, ...] = ()


_open = _Open()


def forget_open_calls() -> None:
    """Do not keep the last program that this thread lowered."""
    _open.callbacks, _open.calls = None, ()


def lower_joined_call(ctx: Any, *operands: Any, make: Callable[[], _Received]) -> _Received | None:
    """Add operands to the call of the current block, which moves to the current place.

    Many values of a step of a loop cross to the host in one call. It runs after the last of them.

    Args:
        ctx: JAX's lowering context, whose avals_in are those of the operands.
        *operands: IR values.
        make: returns what takes the NumPy arrays of a new call.

    Returns:
        What takes the arrays, after those that it already takes; None if the operands cannot be
        added to a call and need one of their own.
    """
    module = ctx.module_context
    if module.platforms[0] not in DIRECT or jax_compat.automatic_axes(ctx):
        return None
    if _open.callbacks is not module.host_callbacks:
        _open.callbacks, _open.calls = module.host_callbacks, ()
    block = jax_compat.current_block()
    joined = next((one for one in _open.calls if one.block == block), None)
    if joined is None:
        joined = _Joined(block, make())
        _open.calls = (*_open.calls, joined)
        joined.index = len(module.host_callbacks)
        module.add_host_callback(joined.call)
    else:
        joined.op.erase()
    joined.operands += operands
    joined.avals += ctx.avals_in
    whole = dataclasses.replace(ctx, avals_in=joined.avals, avals_out=[])
    sharding = jax_compat.callback_sharding(whole, None, [])
    joined.op = emit_call_of(
        whole, joined.index, joined.operands, has_side_effect=True, sharding=sharding
    )
    return joined.call
