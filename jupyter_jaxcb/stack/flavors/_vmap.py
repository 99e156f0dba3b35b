"""The batching rule of most flavors, for the vmap methods in `recording`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ... import jax_compat
from ...recording import VMAP_METHODS, AxisKind, VmapLevel
from .. import options
from ..call import HostCallback, did_you_mean
from ..lowering import divided


@options.check("vmap_method")
def _check_vmap_method(vmap_method: Any) -> Any:  # None makes vmap an error
    __tracebackhide__ = True
    is_method = isinstance(vmap_method, str) and vmap_method in VMAP_METHODS
    if vmap_method is not None and not is_method:
        new = [method.name for method in VMAP_METHODS.values() if not method.hides_axes]
        raise ValueError(
            f"unknown vmap method {vmap_method!r}{did_you_mean(str(vmap_method), new)} Pass "
            f"vmap_method= one of {', '.join(map(repr, VMAP_METHODS))}; 'sequential' is correct "
            "for every function."
        )
    return vmap_method


def _gets_whole_batches(given: options.Options) -> bool:
    return given.vmap_method is not None and not VMAP_METHODS[given.vmap_method].looped


options.refuse(
    "vmap_method",
    "ordered",
    "ordered calls never get a whole batch",
    "Drop ordered=True for one call for the batch, or vmap_method= to keep the order.",
    applies=_gets_whole_batches,
)
options.refuse(
    "ordered",
    "partitioned",
    "the devices call at the same time",
    applies=lambda given: given.flavor == "io",
)
options.refuse(
    "sharding", "partitioned", "one is for a call from one device, the other for one from each"
)
options.refuse(
    "ordered",
    "rematerialize",
    "JAX has no effect that orders calls and keeps them out of a backward pass",
    "Make the call outside of the jax.checkpoint, or drop ordered=True.",
    applies=lambda options: options.flavor == "io",
)
options.refuse("partitioned", "compile", "XLA cannot divide a call of machine code")
options.refuse(
    "vmap_method",
    "partitioned",
    "the shard of a device may be a part of the batch",
    "Drop partitioned= for one call for the batch, or vmap_method= for one call for each batch "
    "element on each device.",
    applies=_gets_whole_batches,
)


def with_axes_in_front(args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Return `args` with the axis of one vmap in front, where there is one."""
    return [
        x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(args, dims, strict=True)
    ]


def _with_stand_ins(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Return `args` with the values of the first batch element whose mask, the last one, is true.

    They take the places of elements whose mask is false. In a backward pass, JAX has zeros there,
    with which a host function may fail. Batch axes are in front.
    """
    *operands, mask = args
    if mask.shape[0] == 0:
        return [*args]
    reached = mask.any(tuple(range(1, mask.ndim)))  # by any element of the vmaps inside the branch
    moved = (
        jax_compat.elements_or(reached, x) if on else x
        for x, on in zip(operands, batched, strict=False)
    )
    return [*moved, mask]


def passed(x: Any, kind: AxisKind, size: int) -> Any:
    """Return an argument, whose batch axis is in front, as the host function gets it."""
    if kind is AxisKind.SIZE1:
        return jax.lax.broadcast(x, (1,))
    return jax.lax.broadcast(x, (size,)) if kind is AxisKind.TILED else x


def results_like(
    callback: HostCallback, avals: Sequence[Any], results: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the avals of the results of a bind, which vary and are spread as its operands do."""
    __tracebackhide__ = True
    if callback.options.partitioned and results:
        in_rows = divided(callback, avals, results)
        if any(in_rows):
            results = jax_compat.rows_like(results, avals[in_rows.index(True)])
    return jax_compat.varying_like(results, avals)


def placed_as_operands(
    callback: HostCallback, operands: Sequence[Any], results: Sequence[Any]
) -> list[Any]:
    """Return the results of a partitioned bind on the axes of an explicit mesh of its operands.

    A result with the shape of an operand in rows is on all axes that this operand is on, so that it
    has its type: derivative rules and loops need that. Others are on the axes of the rows.
    """
    avals = [jax.typeof(x) for x in operands]
    in_rows = divided(callback, avals, [jax.typeof(y) for y in results])
    rows = [aval for aval, on in zip(avals, in_rows, strict=True) if on]
    like = [next((aval for aval in rows if aval.shape == y.shape), y) for y in results]
    return list(map(jax_compat.sharded_as, results, like))


def refuse_names(given: options.Options, name: str) -> None:
    """Raise ValueError if parameters of a callback without results are named as divided."""
    __tracebackhide__ = True
    if isinstance(given.partitioned, tuple):
        raise ValueError(
            f"{given.spelled('partitioned')} needs a result, and {name} has none: each device "
            "passes its part of every argument. Pass partitioned=True."
        )


def batch_in_program(
    primitive: jax_compat.Primitive, args: Sequence[Any], dims: Sequence[int | None], **params: Any
) -> tuple[Any, Sequence[int | None]]:
    """Apply the batching rule of partitioned callbacks: a loop of the program over the elements."""
    args = with_axes_in_front(args, dims)
    params["callback"].bind.loops_over_elements()

    def one(rows: Sequence[Any]) -> Any:
        left = iter(rows)
        own = [x if dim is None else next(left) for x, dim in zip(args, dims, strict=True)]
        return primitive.bind(*own, **params)

    batched = [x for x, dim in zip(args, dims, strict=True) if dim is not None]
    outs = jax.lax.map(one, [jax_compat.first_axis_whole(x) for x in batched])
    return _placed_as(outs, batched), (0,) * len(outs)


def _placed_as(outs: Sequence[Any], batched: Sequence[Any]) -> list[Any]:
    """Return results, whose batch axis is on the axes of an explicit mesh that the arguments' is.

    JAX takes it to be there.
    """
    return [jax_compat.first_axis_as(x, batched[0]) for x in outs]


def batch_host_call(
    primitive: jax_compat.Primitive,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    method: str | None,
    result_avals: tuple[Any, ...],
    levels: tuple[VmapLevel, ...],
    callback: Any,
    axis_name: str = "",
    **params: Any,
) -> tuple[Any, Sequence[int | None]]:
    """Apply the batching rule of most flavors: move batch axes to the front, add one vmap level.

    Raises:
        NotImplementedError: if `method` is None; the message lists the methods.
    """
    __tracebackhide__ = True
    given = callback.options
    if given.masked and "where" not in given.masked and dims[-1] is not None:
        alone = all(dim is None for dim in dims[:-1])
        is_whole = _gets_whole_batches(given) and "rule" not in given.masked
        if is_whole and given.flavor == "io":
            raise ValueError(
                f"cannot vmap {callback} in a branch or loop with a batched predicate: with "
                f"vmap_method={method!r} one call gets all batch elements, also those that do not "
                'reach it. Pass vmap_method="sequential", or call it with '
                f"{callback.host.variable}.where(predicate, ...) instead of the branch: then it "
                "gets the elements that need it."
            )
        if is_whole or (alone and (given.may_repeat or given.masked == "rule")):
            # One call serves all batch elements, if any of them reaches it.
            args, batched = with_axes_in_front(args, dims), [dim is not None for dim in dims]
            if given.may_repeat:
                args = _with_stand_ins(args, batched)
            args = [*args[:-1], args[-1].any(0)]
            dims = [0 if on else None for on in batched[:-1]] + [None]
            if alone:
                params |= dict(result_avals=result_avals, levels=levels, callback=callback)
                outs = primitive.bind(*args, **params)
                return outs, [None] * len(outs)
    if method is None:
        raise NotImplementedError(
            f"cannot vmap {callback} without a vmap_method: vmap is only supported with "
            f"vmap_method= one of {', '.join(map(repr, VMAP_METHODS))}; 'sequential' is correct "
            "for every function."
        )
    if given.partitioned:  # the host gets the rows of one device
        params |= dict(result_avals=result_avals, levels=levels, callback=callback)
        return batch_in_program(primitive, args, dims, **params)
    (size,) = {x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None}
    batched = tuple(dim is not None for dim in dims)
    level = VmapLevel(size, VMAP_METHODS[method], batched, axis_name)
    avals = tuple(jax_compat.shaped_array((size, *aval.shape), aval.dtype) for aval in result_avals)
    args = with_axes_in_front(args, dims)
    outs = primitive.bind(
        *map(passed, args, level.axes, [size] * len(args)),
        callback=callback,
        result_avals=avals,
        levels=(*levels, level),
        **params,
    )
    return _placed_as(outs, [x for x, on in zip(args, batched, strict=True) if on]), (0,) * len(
        outs
    )
