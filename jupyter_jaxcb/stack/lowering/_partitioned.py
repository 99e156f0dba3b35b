"""Make one host call on each device of jit, with the rows that the device has.

XLA does not know how a host call is divided, and gathers its operands for one. With JAX's
`custom_partitioning` it asks, while it compiles, what each device computes, and where operands and
results are. The answer is a module of its own, which cannot hold a host function. So the call in it
has the number that the host function has in the table of the program around it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from ... import jax_compat
from ...recording import Aval, LoweredSite, on_one_line
from ..call import ArrayNames, HostCallback
from ..dispatch import Crossing
from ..options import check
from ._custom_call import DIRECT, FFI_TARGET
from ._sub_byte import IS_SOUND, bits

shard_call_p = jax_compat.Primitive("jaxcb_shard_call")
shard_call_p.multiple_results = True


@check("partitioned")
def _check_partitioned(partitioned: Any) -> Any:
    __tracebackhide__ = True
    if partitioned is True:
        return True
    names = partitioned.split(",") if isinstance(partitioned, str) else partitioned
    given = isinstance(names, tuple | list) and all(isinstance(name, str) for name in names)
    named = tuple(name.strip() for name in names) if given else ()
    if not named or not all(named):
        raise TypeError(
            f"partitioned must be True or names of parameters, but got {partitioned!r}. Pass True "
            "if each device has its own rows of all array arguments, or the names of these. Leave "
            "it out for one call with all rows."
        )
    return named


@check("sharding")
def _check_sharding(sharding: Any) -> Any:
    __tracebackhide__ = True
    if not isinstance(sharding, jax.sharding.Sharding):
        raise TypeError(
            f"sharding must be the device to call from, but got {on_one_line(repr(sharding))}. "
            "Pass jax.sharding.SingleDeviceSharding(device)."
        )
    return sharding


def in_rows(
    named: bool | tuple[str, ...], names: Sequence[str], operands: Sequence[Any]
) -> list[bool]:
    """Return which operands an option ``partitioned=`` says are passed in rows.

    Args:
        named: the option.
        names: the names of the operands; empty if they are not known.
        operands: the operands, or their avals.
    """
    if isinstance(named, bool):
        return [named and aval.ndim > 0 for aval in operands]
    return [
        any(name == one or name.startswith((f"{one}[", f"{one}.")) for one in named)
        for name in (*names, *[""] * (len(operands) - len(names)))
    ]


def divided(callback: HostCallback, operands: Sequence[Any], results: Sequence[Any]) -> list[bool]:
    """Return which operands of a partitioned call are passed in rows, and the others as a whole.

    Args:
        callback: the callback.
        operands: the avals of all operands.
        results: the avals of the results.

    Raises:
        ValueError: if the operands or the results do not have the same rows.
    """
    __tracebackhide__ = True
    named, names = callback.options.partitioned, ArrayNames.of(callback).operands()
    given = in_rows(named, names, operands)
    if named is True and not any(given) and all(aval.ndim == 0 for aval in results):
        return given  # numbers: there is nothing to divide
    rows = {aval.shape[:1] for aval, on in zip(operands, given, strict=True) if on}
    if len(rows) != 1 or () in rows or any(aval.shape[:1] not in rows for aval in results):
        shapes = ", ".join(
            f"{name or 'an argument'} {aval.shape}"
            for name, aval, on in zip((*names, *operands), operands, given, strict=False)
            if on
        )
        raise ValueError(
            f"{callback} is partitioned, so the arguments in parts ({shapes or 'none'}) and all "
            f"results ({', '.join(str(a.shape) for a in results)}) need one first axis. "
            f"{_with_rows_of(results, operands, names)}, or call it in jax.shard_map."
        )
    return given


def _with_rows_of(results: Sequence[Any], operands: Sequence[Any], names: Sequence[str]) -> str:
    """Return what to type instead: the names of the arguments that have the rows of the results."""
    rows = {aval.shape[:1] for aval in results}
    named = [
        name.partition("[")[0]
        for name, aval in zip(names, operands, strict=False)
        if rows == {aval.shape[:1]} != {()}
    ]
    found = ", ".join(dict.fromkeys(named))
    return f"Pass partitioned={found!r}" if found else "Drop partitioned="


def emit_for_each(
    ctx: Any,
    callback: HostCallback,
    lowered: LoweredSite,
    build: Callable[[LoweredSite], Crossing],
    operands: Sequence[Any],
    *,
    has_side_effect: bool,
) -> list[Any]:
    """Emit a call that each device of jit makes with its rows; return the IR values of the results.

    Args:
        ctx: JAX's lowering context.
        callback: the host function.
        lowered: the site, as one call for all devices has it.
        build: builds the crossing of a site.
        operands: IR values.
        has_side_effect: whether XLA must keep the call even if its results are unused.
    """
    __tracebackhide__ = True
    _refuse(ctx, callback)
    avals = tuple(jax_compat.shaped_array(a.shape, a.dtype) for a in ctx.avals_out)
    parts = divided(callback, ctx.avals_in, avals)
    first = parts.index(True) if any(parts) else None
    params = dict(index=len(ctx.module_context.host_callbacks), has_side_effect=has_side_effect)
    devices = jax_compat.program_devices(ctx)
    ctx.module_context.add_host_callback(_by_rows(lowered, devices, build, first))

    def specs(sharding: Any, rows: int) -> PartitionSpec:
        """Return how a sharding divides the rows: evenly, or not at all."""
        axes = sharding.spec[0]
        names = (axes,) if isinstance(axes, str) else axes or ()
        parts = np.prod([sharding.mesh.shape[name] for name in names], dtype=int)
        return PartitionSpec(axes if rows % parts == 0 else None)

    def shardings(mesh: Any, given: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the shardings of operands and results, given the operands."""
        rows = whole = NamedSharding(mesh, PartitionSpec())
        if first is not None:
            rows = NamedSharding(mesh, specs(given[first].sharding, given[first].shape[0]))
        return [rows if on else whole for on in parts], [rows] * len(avals)

    def partition(mesh: Any, given: Sequence[Any], results: Any) -> tuple[Any, ...]:
        ins, outs = shardings(mesh, given)

        def on_each(*arrays: Any) -> list[Any]:
            local = [a.update(shape=_shape(a, arrays, first)) for a in avals]
            with jax_compat.without_mesh():  # the module has no shardings
                number = jax.lax.axis_index(mesh.axis_names).astype(jnp.uint32)
            return shard_call_p.bind(number, *arrays, avals=tuple(local), **params)

        return mesh, on_each, outs, tuple(ins)

    @custom_partitioning
    def whole(*arrays: Any) -> list[Any]:
        return shard_call_p.bind(jnp.uint32(0), *arrays, avals=avals, **params)

    whole.def_partition(
        partition=partition,
        infer_sharding_from_operands=lambda mesh, given, _: shardings(mesh, given)[1],
        sharding_rule=_rule(ctx.avals_in, avals, parts),
    )
    context = dataclasses.replace(
        ctx, avals_out=avals, tokens_in=jax_compat.TokenSet(), tokens_out=None
    )
    values = list(jax_compat.mlir.lower_fun(whole)(context, *operands))
    if has_side_effect:
        # So XLA keeps it even if its results are not used.
        values[0].owner.attributes["has_side_effect"] = jax_compat.mlir.ir_attribute(True)
    return values


def _rule(operands: Sequence[Any], results: Sequence[Any], in_rows: Sequence[bool]) -> str:
    """Return the rule for XLA: all arrays in rows share the first axis, and no other."""
    numbers = iter(range(sum(aval.ndim for aval in (*operands, *results))))

    def axes(aval: Any, on: bool) -> str:
        own = [f"a{next(numbers)}" for _ in range(aval.ndim - on)]
        return " ".join(["rows"] * on + own)

    of_results = [axes(aval, any(in_rows)) for aval in results]
    given = [axes(aval, on) for aval, on in zip(operands, in_rows, strict=True)]
    return f"{', '.join(given)} -> {', '.join(of_results)}"


def _by_rows(
    lowered: LoweredSite,
    devices: Sequence[str],
    build: Callable[[LoweredSite], Crossing],
    first: int | None,
) -> Crossing:
    """Return a crossing that takes the number of its device first, then the rows of this device."""
    crossings: dict[tuple[Any, ...], Crossing] = {}

    def cross(number: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        shard = int(number)
        key = shard, *(array.shape for array in arrays)
        own = crossings.get(key)
        if own is None:
            fact = _of_part(
                lowered,
                arrays,
                results=tuple(Aval(_shape(a, arrays, first), a.dtype) for a in lowered.results),
                shard=shard,
                device=devices[shard] if shard < len(devices) else "",
            )
            own = crossings.setdefault(key, build(fact))
        return own(*arrays)

    return cross


def by_parts(lowered: LoweredSite, build: Callable[[LoweredSite], Crossing]) -> Crossing:
    """Return a crossing without results, which each device calls with its part of the operands."""
    crossings: dict[tuple[Any, ...], Crossing] = {}

    def cross(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        key = tuple(array.shape for array in arrays)
        own = crossings.get(key)
        if own is None:
            own = crossings.setdefault(key, build(_of_part(lowered, arrays)))
        return own(*arrays)

    return cross


def _of_part(lowered: LoweredSite, arrays: Sequence[np.ndarray], **more: Any) -> LoweredSite:
    given = zip(lowered.operands, arrays, strict=True)
    operands = tuple(Aval(array.shape, aval.dtype) for aval, array in given)
    return dataclasses.replace(lowered, operands=operands, **more)


def _shape(result: Any, arrays: Sequence[Any], first: int | None) -> tuple[int, ...]:
    """Return the shape of a result in a call with `arrays`, of which `first` has its rows."""
    return result.shape if first is None else (*arrays[first].shape[:1], *result.shape[1:])


def _refuse(ctx: Any, callback: HostCallback) -> None:
    __tracebackhide__ = True
    if ctx.module_context.platforms[0] not in DIRECT:
        raise NotImplementedError(
            f"cannot lower {callback} with partitioned= for {ctx.module_context.platforms[0]}: "
            "drop it, or call the callback in jax.shard_map."
        )
    if getattr(ctx.module_context.axis_context, "abstract_mesh", None) is None:
        raise NotImplementedError(
            f"cannot lower {callback} with partitioned=: the program's arrays have no mesh. Give "
            "them a jax.NamedSharding, or call the callback in jax.shard_map."
        )
    if not IS_SOUND and any(bits(a.dtype) < 8 for a in (*ctx.avals_in, *ctx.avals_out)):
        raise NotImplementedError(
            f"cannot lower {callback} with partitioned=: before jaxlib 0.10.2, numbers of 4 bits "
            "arrive with garbage. Update jaxlib, or drop partitioned=."
        )


def _abstract_eval(*operands: Any, avals: tuple[Any, ...], **params: Any) -> tuple[Any, ...]:
    return avals


def _lower(ctx: Any, *operands: Any, index: int, has_side_effect: bool, **params: Any) -> Any:
    target = FFI_TARGET.format(DIRECT[ctx.module_context.platforms[0]])
    lower = jax_compat.build_ffi_lowering_function(target, has_side_effect=has_side_effect)
    return lower(ctx, *operands, index=np.uint64(index)).results


shard_call_p.def_abstract_eval(_abstract_eval)
jax_compat.mlir.register_lowering(shard_call_p, _lower, cacheable=False)
