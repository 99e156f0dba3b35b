"""Read facts about the program from a lowering context."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import jax
import numpy as np

from ._private import JaxFunction, optional_module
from ._required import LoweringContext, mlir, shaped_array

_hlo: Any = getattr(optional_module("jax._src.lib.mlir.dialects"), "hlo", None)
_JIT = JaxFunction("jax._src.interpreters.pxla", "lower_sharding_computation", "device_assignment")
_mlir: Any = optional_module("jax._src.lib.mlir")


def automatic_axes(ctx: LoweringContext) -> tuple[str, ...]:
    """Return the mesh axes that a partly manual ``shard_map`` leaves to XLA; else none."""
    context = ctx.module_context.axis_context
    manual = getattr(context, "manual_axes", None)
    if manual is None:
        return ()
    return tuple(axis for axis in context.mesh.axis_names if axis not in manual)


def is_for_export(ctx: LoweringContext) -> bool:
    """Return whether `jax.export` is lowering; if unknown, export raises its own error later."""
    parameters = getattr(ctx.module_context, "lowering_parameters", None)
    return getattr(parameters, "for_export", False)


def device_count(ctx: LoweringContext) -> int:
    """Return how many devices one call covers under jit; 1 in a ``shard_map``."""
    return getattr(ctx.module_context.axis_context, "num_devices", 1)


def shard_count(ctx: LoweringContext) -> int:
    """Return how many devices call, each on its shard (``shard_map``); else 1."""
    context = ctx.module_context.axis_context
    manual = getattr(context, "manual_axes", None) and not automatic_axes(ctx)
    return context.mesh.size if manual else 1


def group_count(ctx: LoweringContext) -> int:
    """Return the number of shards on the manual axes of a partly manual ``shard_map``; else 1."""
    if not automatic_axes(ctx):
        return 1
    context = ctx.module_context.axis_context
    return math.prod(context.mesh.shape[axis] for axis in context.manual_axes)


def times_called(ctx: LoweringContext, *, everywhere: bool, sharding: Any = None) -> int:
    """Return how often this process makes one call of the program: once per calling device.

    Under jit over several processes, one device calls for all, so processes without that device
    make 0 calls. If JAX does not expose the devices (``pmap`` without ``shard_map``), all devices
    are counted.

    Args:
        ctx: JAX's lowering context.
        everywhere: every device of jit makes the call.
        sharding: the device of jit that makes the call, as in `callback_sharding`.
    """
    devices, shards = device_count(ctx), shard_count(ctx)
    alone = jax.process_count() == 1
    if shards > 1 or everywhere:
        return max(devices, shards) if alone else _own(_devices(ctx), max(devices, shards))
    if alone or devices == 1:
        return 1
    if isinstance(sharding, jax.sharding.SingleDeviceSharding):
        return _own(list(sharding.device_set), 1)
    number = sharding if isinstance(sharding, int) else 0
    return _own(_devices(ctx)[number : number + 1], 1)


def _devices(ctx: LoweringContext) -> Sequence[Any]:
    """Return the devices of a program, in its order; empty if JAX does not expose them."""
    context = ctx.module_context.axis_context
    if getattr(context, "manual_axes", None):
        try:
            return list(context.mesh.devices.flat)
        except (AttributeError, ValueError):  # an abstract mesh
            pass
    else:
        # Under jit JAX passes the devices only to primitives that require them.
        assigned = getattr(context, "device_assignment", None) or _assigned()
        if assigned is not None:
            return assigned
    # If the count matches, assume all devices, which is nearly always right.
    every = jax.devices()
    return every if len(every) == max(device_count(ctx), shard_count(ctx)) else ()


def _assigned() -> Sequence[Any] | None:
    """Return the devices of the program under jit that is being lowered; None if unknown."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        assigned = _JIT.value_in(frame)
        if assigned is not None:
            return list(assigned)
        frame = frame.f_back
    return None


def _own(devices: Sequence[Any], otherwise: int) -> int:
    here = jax.process_index()
    return sum(one.process_index == here for one in devices) if devices else otherwise


def shard_devices(ctx: LoweringContext) -> tuple[str, ...]:
    """Return the device of each shard of a ``shard_map``, such as ``cpu:3``; else empty.

    Also empty for an abstract mesh, and for ``pmap`` without ``shard_map``.
    """
    context = ctx.module_context.axis_context
    if not getattr(context, "manual_axes", None) or automatic_axes(ctx):
        return ()
    try:
        devices = context.mesh.devices.flat
    except (AttributeError, ValueError):
        return ()
    return tuple(f"{device.platform}:{device.id}" for device in devices)


def has_named_mesh(ctx: LoweringContext) -> bool:
    """Return whether the arrays of a program under jit are on a mesh, whose axes have names."""
    return getattr(ctx.module_context.axis_context, "abstract_mesh", None) is not None


def program_devices(ctx: LoweringContext) -> tuple[str, ...]:
    """Return the devices of a program, such as ``cpu:3``, in its order; empty if unknown."""
    return tuple(f"{device.platform}:{device.id}" for device in _devices(ctx))


def keep_operation(value: Any) -> None:
    """Let XLA keep the operation of an IR value even if its results are not used."""
    value.owner.attributes["has_side_effect"] = mlir.ir_attribute(True)


def shard_number(ctx: LoweringContext) -> Any:
    """Return the IR value (uint32) of the shard's number; None if this JAX does not expose it."""
    manual = getattr(ctx.module_context.axis_context, "manual_axes", None)
    number = getattr(_hlo, "partition_id" if manual else "replica_id", None)
    return None if number is None else number()


def frames_of(traceback: Any) -> list[tuple[Any, int]]:
    """Return code and instruction of each frame of a JAX traceback, innermost first."""
    try:
        codes, instructions = traceback.raw_frames()
    except AttributeError:  # None, or another type
        return []
    return list(zip(codes, instructions, strict=True))


def program_name(ctx: LoweringContext) -> str:
    """Return the name of the module being lowered, such as ``jit_f``."""
    attributes = ctx.module_context.module.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else "unnamed"


def current_block() -> Any:
    """Return the block of the program that operations are being added to."""
    return _mlir.ir.InsertionPoint.current.block


def flat(value: Any, aval: Any) -> tuple[Any, Any]:
    """Return an IR value as a vector, and its aval."""
    if aval.ndim == 1:
        return value, aval
    tensor = _mlir.ir.RankedTensorType
    kind = tensor.get([aval.size], tensor(value.type).element_type)
    return _hlo.reshape(kind, value), shaped_array((aval.size,), aval.dtype)


HAS_BRANCHES = all(
    hasattr(owner, name)
    for owner, name in (
        (_hlo, "IfOp"), (_hlo, "ReduceOp"), (_hlo, "OptimizationBarrierOp"),
        (mlir, "i64_attr"), (mlir, "dense_int_array"),
    )
)  # fmt: skip


class Branch:
    """Code in the current block that runs if one of several signs says so.

    A sign is a boolean, or a vector of float32 values, which says so if its sum is not finite. It
    is computed last in the block when it is given. One sum has all vectors, because XLA compiles
    each on its own.
    """

    def __init__(self, sign: Any) -> None:
        self._flag: Any = None
        self._vectors: list[Any] = []
        self._derived: list[Any] = []  # values that the next sign replaces
        self._op = _hlo.IfOp([], self._predicate(sign))
        self._code, nothing = (region.blocks.append() for region in self._op.regions)
        self._end = _end_of(self._code)
        _end_of(nothing)

    def also_if(self, sign: Any) -> None:
        """Run for this sign, too."""
        replaced = self._derived
        predicate = self._predicate(sign)
        self._op.operation.move_after(predicate.owner)
        self._op.operation.operands[0] = predicate
        for value in reversed(replaced):
            value.owner.erase()

    def _predicate(self, sign: Any) -> Any:
        if _mlir.ir.RankedTensorType(sign.type).rank:
            self._vectors.append(sign)
        else:
            self._flag = sign if self._flag is None else _hlo.or_(self._flag, sign)
        self._derived = _not_finite(self._vectors) if self._vectors else []
        if self._derived and self._flag is not None:
            self._derived.append(_hlo.or_(self._flag, self._derived[-1]))
        return self._derived[-1] if self._derived else self._flag

    def add(self, emit: Callable[[], Any]) -> Any:
        """Add the operations that `emit` emits to the code; return what it returns."""
        self._end.operation.erase()
        with _mlir.ir.InsertionPoint(self._code):
            emitted = emit()
        self._end = _end_of(self._code)
        return emitted


def _not_finite(vectors: Sequence[Any]) -> list[Any]:
    """Return whether the sum of all values is not finite, after what that is computed from."""
    joined = _hlo.ConcatenateOp(vectors, mlir.i64_attr(0)).results[0]
    kept = _hlo.OptimizationBarrierOp([joined]).results[0]  # XLA would sum each vector on its own
    zero = mlir.ir_constant(np.float32(0))
    of = zero.type
    total = _hlo.ReduceOp([of], [kept], [zero], mlir.dense_int_array([0]))
    with _mlir.ir.InsertionPoint(total.regions[0].blocks.append(of, of)):
        _hlo.return_([_hlo.add(*total.regions[0].blocks[0].arguments)])
    finite = _hlo.is_finite(total.results[0])
    return [joined, kept, zero, total.results[0], finite, _hlo.not_(finite)]


def _end_of(block: Any) -> Any:
    with _mlir.ir.InsertionPoint(block):
        return _hlo.return_([])
