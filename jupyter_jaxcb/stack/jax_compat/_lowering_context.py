"""What a lowering context says of the program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax

try:
    from jax._src.lib.mlir.dialects import hlo as _hlo
except ImportError:
    _hlo = None


def automatic_axes(ctx: Any) -> tuple[str, ...]:
    """The mesh axes that a partly manual ``shard_map`` leaves to XLA; none anywhere else."""
    context = ctx.module_context.axis_context
    manual = getattr(context, "manual_axes", None)
    if manual is None:
        return ()
    return tuple(axis for axis in context.mesh.axis_names if axis not in manual)


def is_for_export(ctx: Any) -> bool:
    """Whether `jax.export` lowers; if it does not say so, its own words follow later."""
    parameters = getattr(ctx.module_context, "lowering_parameters", None)
    return getattr(parameters, "for_export", False)


def device_count(ctx: Any) -> int:
    """For how many devices one call stands: those of jit over several; 1 in a ``shard_map``."""
    return getattr(ctx.module_context.axis_context, "num_devices", 1)


def shard_count(ctx: Any) -> int:
    """On how many devices a call is made, each with its shard: ``shard_map``, ``pmap``; else 1."""
    context = ctx.module_context.axis_context
    if getattr(context, "manual_axes", None) and not automatic_axes(ctx):
        return context.mesh.size
    return math.prod(getattr(getattr(context, "axis_env", None), "sizes", ()) or ())


def group_count(ctx: Any) -> int:
    """How many shards the manual axes of a partly manual ``shard_map`` make; 1 anywhere else."""
    if not automatic_axes(ctx):
        return 1
    context = ctx.module_context.axis_context
    return math.prod(context.mesh.shape[axis] for axis in context.manual_axes)


def times_called(ctx: Any, *, everywhere: bool, sharding: Any = None) -> int:
    """How many calls this process makes of one in the program: one for each of its devices.

    Under jit over the devices of several processes one device calls for all, and 0 is the answer in
    those processes which it is not of. All devices are counted where JAX does not say which they
    are: under ``pmap`` without ``shard_map``.

    Args:
        ctx: JAX's lowering context.
        everywhere: each device of jit calls, too.
        sharding: as in `callback_sharding`: which device of jit calls.
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


def _devices(ctx: Any) -> Sequence[Any]:
    """The devices of a program, in its order; none where JAX does not say."""
    context = ctx.module_context.axis_context
    if getattr(context, "manual_axes", None):
        try:
            return list(context.mesh.devices.flat)
        except (AttributeError, ValueError):  # an abstract mesh
            pass
    else:
        assigned = getattr(context, "device_assignment", None)
        if assigned is not None:
            return assigned
    # JAX does not tell the devices of jit to what can do without; nearly always it is all.
    every = jax.devices()
    return every if len(every) == max(device_count(ctx), shard_count(ctx)) else ()


def _own(devices: Sequence[Any], otherwise: int) -> int:
    here = jax.process_index()
    return sum(one.process_index == here for one in devices) if devices else otherwise


def shard_devices(ctx: Any) -> tuple[str, ...]:
    """The devices of a ``shard_map`` by the number of their shard, ``cpu:3``; empty elsewhere.

    What is lowered for an abstract mesh does not say; nor does ``pmap`` without ``shard_map``.
    """
    context = ctx.module_context.axis_context
    if not getattr(context, "manual_axes", None) or automatic_axes(ctx):
        return ()
    try:
        devices = context.mesh.devices.flat
    except (AttributeError, ValueError):
        return ()
    return tuple(f"{device.platform}:{device.id}" for device in devices)


def shard_number(ctx: Any) -> Any:
    """The IR value of which of these devices it is, uint32; None where JAX has no way to it."""
    manual = getattr(ctx.module_context.axis_context, "manual_axes", None)
    number = getattr(_hlo, "partition_id" if manual else "replica_id", None)
    return None if number is None else number()


def program_name(ctx: Any) -> str:
    """The name of the module being lowered, ``jit_f``."""
    attributes = ctx.module_context.module.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else "unnamed"
