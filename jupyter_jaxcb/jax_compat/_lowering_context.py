"""Which devices make a call of the program being lowered, and where it is lowered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
from jax._src.lib.mlir.dialects import hlo as _hlo

from ._calls import LoweringContext
from ._subjects import code_of, frames


def automatic_axes(ctx: LoweringContext) -> tuple[str, ...]:
    """Return the mesh axes that a partly manual ``shard_map`` leaves to XLA; else none."""
    context = ctx.module_context.axis_context
    manual = getattr(context, "manual_axes", None)
    if manual is None:
        return ()
    return tuple(axis for axis in context.mesh.axis_names if axis not in manual)


def is_for_export(ctx: LoweringContext) -> bool:
    """Return whether `jax.export` is lowering."""
    return ctx.module_context.lowering_parameters.for_export


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
        if (devices := _of_mesh(context.mesh)) is not None:
            return devices
    else:
        # Under jit JAX passes the devices only to primitives that require them.
        assigned = getattr(context, "device_assignment", None) or _assigned()
        if assigned is not None:
            return list(assigned)
    # If the count matches, assume all devices, which is nearly always right.
    every = jax.devices()
    return every if len(every) == max(device_count(ctx), shard_count(ctx)) else ()


def _assigned() -> Sequence[Any] | None:
    """Return the devices of the program under jit that is being lowered; None without one."""
    jit = code_of("interpreters.pxla", "lower_sharding_computation")
    of_jit = (frame.f_locals for frame in frames() if frame.f_code is jit)
    return next(filter(None, (known.get("device_assignment") for known in of_jit)), None)


def _of_mesh(mesh: Any) -> list[Any] | None:
    """Return the devices of a mesh; None if it is abstract."""
    try:
        return list(mesh.devices.flat)
    except (AttributeError, ValueError):
        return None


def _own(devices: Sequence[Any], otherwise: int) -> int:
    here = jax.process_index()
    return sum(one.process_index == here for one in devices) if devices else otherwise


def shard_devices(ctx: LoweringContext) -> tuple[str, ...]:
    """Return the device of each shard of a ``shard_map``, such as ``cpu:3``; else empty.

    Also empty for an abstract mesh, and for ``pmap`` without ``shard_map``.
    """
    context = ctx.module_context.axis_context
    manual = getattr(context, "manual_axes", None) and not automatic_axes(ctx)
    return _names(_of_mesh(context.mesh) or ()) if manual else ()


def program_devices(ctx: LoweringContext) -> tuple[str, ...]:
    """Return the devices of a program, such as ``cpu:3``, in its order; empty if unknown."""
    return _names(_devices(ctx))


def _names(devices: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"{device.platform}:{device.id}" for device in devices)


def shard_number(ctx: LoweringContext) -> Any:
    """Return the IR value (uint32) of the shard's number."""
    manual = getattr(ctx.module_context.axis_context, "manual_axes", None)
    return (_hlo.partition_id if manual else _hlo.replica_id)()
