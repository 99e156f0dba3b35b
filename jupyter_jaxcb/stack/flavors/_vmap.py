"""The batching rule, and the table of vmap methods."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ... import jax_compat
from ...recording import LOOPED_METHODS, VmapLevel
from .. import options
from ..core import did_you_mean


def _sequential(args: Sequence[Any], batched: Sequence[bool], size: int) -> list[Any]:
    """One crossing, one host call for each element: the host loops, with unbatched arguments."""
    return list(args)


def _expand_dims(args: Sequence[Any], batched: Sequence[bool], size: int) -> list[Any]:
    """One host call; unbatched arguments get a leading axis of size 1."""
    return [x if on else jax.lax.broadcast(x, (1,)) for x, on in zip(args, batched, strict=True)]


def _broadcast_all(args: Sequence[Any], batched: Sequence[bool], size: int) -> list[Any]:
    """One host call; unbatched arguments are tiled to the batch size."""
    return [x if on else jax.lax.broadcast(x, (size,)) for x, on in zip(args, batched, strict=True)]


def _legacy_vectorized(args: Sequence[Any], batched: Sequence[bool], size: int) -> list[Any]:
    """One host call; unbatched arguments stay as they are."""
    return list(args)


VMAP_METHODS = {
    "sequential": _sequential,
    "sequential_unrolled": _sequential,
    "expand_dims": _expand_dims,
    "broadcast_all": _broadcast_all,
    "legacy_vectorized": _legacy_vectorized,
}


@options.check("vmap_method", [*VMAP_METHODS])
def _check_vmap_method(vmap_method: Any) -> Any:  # None makes vmap an error
    __tracebackhide__ = True
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        new = [method for method in VMAP_METHODS if method != "legacy_vectorized"]
        raise ValueError(
            f"unknown vmap method {vmap_method!r}{did_you_mean(str(vmap_method), new)} Pass "
            f"vmap_method= one of {', '.join(map(repr, VMAP_METHODS))}; 'sequential' is correct "
            "for every function."
        )
    return vmap_method


def _gets_whole_batches(given: options.Options) -> bool:
    return given.vmap_method is not None and given.vmap_method not in LOOPED_METHODS


options.refuse(
    "vmap_method",
    "ordered",
    "ordered calls never get a whole batch",
    "Drop ordered=True for one call for the batch, or vmap_method= to keep the order.",
    applies=_gets_whole_batches,
)
options.refuse(
    "vmap_method",
    "partitioned",
    "the shard of a device may be a part of the batch",
    "Drop partitioned=True for one call for the batch, or vmap_method= for one call for each batch "
    "element on each device.",
    applies=_gets_whole_batches,
)


def method_of_vectorized(vectorized: bool | None, vmap_method: str | None) -> str | None:
    """Return the vmap method for ``vectorized=``, a removed option of `jax.pure_callback`."""
    __tracebackhide__ = True
    if vectorized is None:
        return vmap_method
    if not isinstance(vectorized, bool):
        raise ValueError(
            f"vectorized must be True or False, but got {vectorized!r}. It is a removed option: "
            "pass vmap_method= instead. If your function has a parameter of this name, wrap it: "
            "lambda x: f(vectorized=x)."
        )
    if vmap_method is not None:
        raise ValueError(
            f"cannot use both vectorized={vectorized} and vmap_method={vmap_method!r}. Pass "
            "vmap_method= alone."
        )
    method = "legacy_vectorized" if vectorized else "sequential"
    warnings.warn(
        f"vectorized={vectorized} is deprecated: pass vmap_method={method!r}"
        + (', or better "expand_dims" or "broadcast_all".' if vectorized else "."),
        DeprecationWarning,
        stacklevel=3,
    )
    return method


def with_axes_in_front(args: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """Return `args` with the axis of one vmap in front, where there is one."""
    return [
        x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(args, dims, strict=True)
    ]


def batch_host_call(
    primitive: jax_compat.Primitive,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    method: str | None,
    result_avals: tuple[Any, ...],
    levels: tuple[VmapLevel, ...],
    callback: Any,
    **params: Any,
) -> tuple[Any, Sequence[int]]:
    """Apply the batching rule of most flavors: move batch axes to the front, add one vmap level.

    Raises:
        NotImplementedError: if `method` is None; the message lists the methods.
    """
    __tracebackhide__ = True
    if method is None:
        raise NotImplementedError(
            f"cannot vmap {callback} without a vmap_method: vmap is only supported with "
            f"vmap_method= one of {', '.join(map(repr, VMAP_METHODS))}; 'sequential' is correct "
            "for every function."
        )
    (size,) = {x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None}
    batched = tuple(dim is not None for dim in dims)
    avals = tuple(jax_compat.shaped_array((size, *aval.shape), aval.dtype) for aval in result_avals)
    outs = primitive.bind(
        *VMAP_METHODS[method](with_axes_in_front(args, dims), batched, size),
        callback=callback,
        result_avals=avals,
        levels=(*levels, VmapLevel(size, method, batched)),
        **params,
    )
    return outs, (0,) * len(outs)
