"""Emit calls of functions of this package, which return nothing and are never recorded."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ... import jax_compat
from ._custom_call import DIRECT, emit_call, emit_call_of
from ._multi_device import lower_once

MOST_KEPT = 2**20  # bytes

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
    """A call in a block, that gets more operands; in a branch of the block, if it has one."""

    def __init__(self, block: Any, index: int, call: Any, branch: jax_compat.Branch | None) -> None:
        self.block, self.index, self.call, self.branch = block, index, call, branch
        self.op: Any = None
        self.operands: list[Any] = []
        self.avals: list[Any] = []

    def add(self, ctx: Any, operands: Sequence[Any]) -> None:
        """Emit the call anew, with more operands, at the current place."""
        if self.op is not None:
            self.op.erase()
        self.operands += operands
        self.avals += ctx.avals_in
        whole = dataclasses.replace(ctx, avals_in=self.avals, avals_out=[])
        sharding = jax_compat.callback_sharding(whole, None, [])
        emit = functools.partial(
            emit_call_of, whole, self.index, self.operands, has_side_effect=True, sharding=sharding
        )
        self.op = emit() if self.branch is None else self.branch.add(emit)

    def has_room(self, avals: Sequence[Any]) -> bool:
        """Return whether a branch may keep that many bytes until it runs."""
        return self.branch is None or _bytes([*self.avals, *avals]) <= MOST_KEPT


def _bytes(avals: Sequence[Any]) -> int:
    return sum(aval.size * aval.dtype.itemsize for aval in avals)


class _Open(threading.local):
    callbacks: Any = None  # the host functions of the program, which JAX lowers in this thread
    calls: tuple[_Joined, ...] = ()
    count: int = 0  # of these functions, after the last call that was joined


_open = _Open()


def forget_open_calls() -> None:
    """Do not keep the last program that this thread lowered."""
    _open.callbacks, _open.calls = None, ()


def lower_joined_call(
    ctx: Any, *operands: Any, make: Callable[[], _Received], when: Any = None
) -> _Received | None:
    """Add operands to the call of the current block, which moves to the current place.

    Many values of a step of a loop cross to the host in one call. It runs after the last of them.

    Args:
        ctx: JAX's lowering context, whose avals_in are those of the operands.
        *operands: IR values.
        make: returns what takes the NumPy arrays of a new call.
        when: a sign of a `jax_compat.Branch`. With it, the call is another one, in a branch that
            runs if any of its signs says so. Operands stay in memory until then, so a branch gets
            as many as have `MOST_KEPT` bytes, or those of one call.

    Returns:
        What takes the arrays, after those that it already takes; None if the operands cannot be
        added to a call and need one of their own.
    """
    module = ctx.module_context
    if module.platforms[0] not in DIRECT or jax_compat.automatic_axes(ctx):
        return None
    if _open.callbacks is not module.host_callbacks:
        _open.callbacks, _open.calls = module.host_callbacks, ()
    block, has_branch = jax_compat.current_block(), when is not None
    has_others = len(module.host_callbacks) != _open.count
    _open.calls = tuple(
        one
        for one in _open.calls
        # A branch runs before loops and host calls that follow it, which may not end, or raise.
        if not one.branch or not (has_others or (has_branch and one.block != block))
    )
    same = (one for one in _open.calls if one.block == block and bool(one.branch) == has_branch)
    joined = next((one for one in same if one.has_room(ctx.avals_in)), None)
    if joined is None:
        branch = jax_compat.Branch(when) if has_branch else None
        joined = _Joined(block, len(module.host_callbacks), make(), branch)
        _open.calls = (*_open.calls, joined)
        module.add_host_callback(joined.call)
    elif joined.branch:
        joined.branch.also_if(when)
    joined.add(ctx, operands)
    _open.count = len(module.host_callbacks)
    return joined.call
