"""The axes of values: those that a vmap maps, and those of the mesh of a ``shard_map``.

JAX keeps the manual mesh axes that a value varies over in its type, to sum cotangents over the
right shards, and to refuse ``out_specs`` that would drop shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax._src.interpreters import batching as _batching
from jax.core import ShapedArray, Tracer
from jax.sharding import PartitionSpec

from ._calls import Primitive


def register_batching(primitive: Primitive, rule: Callable[..., tuple[Any, Sequence[Any]]]) -> None:
    """Register a batching rule, which gets the operands, their axes and the keyword `axis_name`.

    The name is empty if the axis has none.
    """

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        __tracebackhide__ = True
        if all(dim is None for dim in dims):  # JAX does not look for it in such a rule
            results = primitive.bind(*args, **params)
            return results, [None] * len(results)
        return rule(args, dims, axis_name=_axis_name(axis), **params)

    _batching.fancy_primitive_batchers[primitive] = batch


def _axis_name(axis: Any) -> str:
    """Return the name of an axis, or those of the mesh axes that it is spread over: ``"x,y"``."""
    if isinstance(axis.name, str):
        return axis.name
    mesh_axes = axis.spmd_name or ()
    return ",".join(map(str, mesh_axes if isinstance(mesh_axes, tuple) else (mesh_axes,)))


def varying_axes(avals: Iterable[Any]) -> frozenset[str]:
    """Return the axes over which at least one of `avals` varies; none outside ``shard_map``."""
    return frozenset[str]().union(*map(_axes, avals))


def _axes(aval: Any) -> frozenset[str]:
    of_array = getattr(aval, "manual_axis_type", None)
    return of_array.varying if of_array is not None else frozenset()


def vary_together(tree: Any) -> Any:
    """Return the pytree `tree` with each array varying over the axes of all.

    JAX then sums the cotangent of an array over the axes that it did not vary over. Leaves that are
    not arrays stay as they are.
    """
    axes = varying_axes(x.aval for x in jax.tree.leaves(tree) if isinstance(x, Tracer))
    return jax.tree.map(lambda x: _cast(x, axes), tree) if axes else tree


def _cast(x: Any, axes: frozenset[str]) -> Any:
    try:
        missing = tuple(sorted(axes - _axes(jax.typeof(x))))
    except TypeError:  # not an array
        return x
    if not missing:
        return x
    return jax.lax.pcast(x, missing, to="varying")


def varying_like(results: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return the avals `results`, varying over every axis over which one of `operands` varies."""
    axes = varying_axes(operands)
    if not axes:
        return tuple(results)
    like = next(aval for aval in operands if _axes(aval))
    varying = type(like.manual_axis_type)(varying=axes)
    return tuple(
        aval.update(
            sharding=like.sharding.update(spec=PartitionSpec(*[None] * aval.ndim)),
            manual_axis_type=varying,
        )
        for aval in results
    )


def rows_like(results: Sequence[Any], operand: Any) -> tuple[Any, ...]:
    """Return the avals `results`, whose first axis is spread as that of `operand` is.

    It is on the axes of an explicit mesh; otherwise they are not known while JAX traces.
    """
    axes = operand.sharding.spec[0] if operand.ndim else None
    if axes is None:
        return tuple(results)
    return tuple(
        aval.update(
            sharding=operand.sharding.update(spec=PartitionSpec(axes, *[None] * (aval.ndim - 1)))
        )
        for aval in results
    )


def first_axis_whole(x: Any) -> Any:
    """Return the array `x` with its first axis on no axis of an explicit mesh."""
    return _with_first_axis(x, None, x)


def element_of(x: Any, number: Any) -> jax.Array:
    """Return an element of the array `x`, in an axis of size 1."""
    # JAX cannot take one element of an axis that an explicit mesh divides.
    return jax.lax.dynamic_index_in_dim(first_axis_whole(x), number)


def elements_or(mask: jax.Array, x: jax.Array) -> jax.Array:
    """Return the elements of `x` where `mask` is true, and elsewhere the first of these."""
    first = element_of(x, mask.argmax())  # any, if `mask` is true nowhere
    return jnp.where(mask.reshape(-1, *[1] * (x.ndim - 1)), x, first)


def first_axis_as(x: Any, like: Any) -> Any:
    """Return the array `x` with its first axis on the mesh axes of the first axis of `like`."""
    spec = getattr(_sharding(like), "spec", None)
    return _with_first_axis(x, spec[0] if spec else None, like)


def sharded_as(x: Any, like: Any) -> Any:
    """Return the array `x` on the axes of an explicit mesh on which the array or aval `like` is."""
    wanted = _sharding(like)
    return x if wanted is None else _with_spec(x, wanted.spec, like)


def sharded_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two arrays on the same axes of an explicit mesh: on those of `x`, if it has a mesh.

    The result of a host call has none, until it meets an array that has one.
    """
    given = _sharding(x)
    if given is not None and given.mesh.empty:
        return sharded_as(x, y), y
    return x, sharded_as(y, x)


def _with_first_axis(x: Any, axes: Any, like: Any) -> Any:
    spec = getattr(_sharding(x), "spec", None)
    if not spec or spec[0] == axes:
        return x
    return _with_spec(x, PartitionSpec(axes, *spec[1:]), like)


def _with_spec(x: Any, spec: PartitionSpec, like: Any) -> Any:
    given = _sharding(x)
    if given is None or spec == given.spec:
        return x
    on = _sharding(like) if given.mesh.empty else given
    # Not the spec alone, which JAX takes only in `jax.set_mesh`: programs do without it.
    return jax.sharding.reshard(x, on.update(spec=spec))


def _sharding(x: Any) -> Any:
    return getattr(x if isinstance(x, ShapedArray) else jax.typeof(x), "sharding", None)
