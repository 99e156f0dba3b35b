"""Callbacks whose calls are masked: with ``where`` of ours, or in the host function with JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

from ._compare import JAX, Reference
from ._hosts import result_leaves, returned
from ._interpret import Table
from ._programs import Program, sites

# With JAX's other methods, the host function gets the whole batch.
LOOPED = ("sequential", "sequential_unrolled", None)
_OTHERWISE = 3


def _mask(args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return whether the sum of all arrays is even; about half of the sums are."""
    arrays = [x for x in jax.tree.leaves((args, kwargs)) if not isinstance(x, str)]
    return sum(jnp.sum(jnp.real(x)).astype(jnp.float32) for x in arrays) % 2 == 0


def _others(declared: Any) -> Any:
    return jax.tree.map(lambda leaf: np.full(leaf.shape, _OTHERWISE, leaf.dtype), declared)


def _method(method: str | None) -> str | None:
    return method if method in LOOPED else "sequential"


def _where_pure(
    host: Any, declared: Any, *args: Any, vmap_method: str | None, **kwargs: Any
) -> Any:
    callback = jaxcb.pure(host, result=declared, vmap_method=_method(vmap_method))
    return callback.where(_mask(args, kwargs), *args, otherwise=_others(declared), **kwargs)


def _where_io(host: Any, declared: Any, *args: Any, ordered: bool, **kwargs: Any) -> Any:
    others = {} if declared is None else {"otherwise": _others(declared)}
    callback = jaxcb.io(host, result=declared, ordered=ordered)
    return callback.where(_mask(args, kwargs), *args, **others, **kwargs)


def _where_debug(host: Any, *args: Any, ordered: bool, **kwargs: Any) -> None:
    jaxcb.debug(host, ordered=ordered).where(_mask(args, kwargs), *args, **kwargs)


def _if(host: Callable[..., Any], declared: Any) -> Callable[..., Any]:
    """Return a host function that calls `host` only if its first argument is true."""

    def masked(mask: Any, *args: Any, **kwargs: Any) -> Any:
        return host(*args, **kwargs) if mask else _others(declared)

    return masked


def _select(mask: Any, results: Any, declared: Any) -> Any:
    return jax.tree.map(lambda y, other: jnp.where(mask, y, other), results, _others(declared))


def _jax_pure(host: Any, declared: Any, *args: Any, vmap_method: str | None, **kwargs: Any) -> Any:
    mask, method = _mask(args, kwargs), _method(vmap_method)
    masked = _if(host, declared)
    found = jax.pure_callback(masked, declared, mask, *args, vmap_method=method, **kwargs)
    return _select(mask, found, declared)


def _jax_io(host: Any, declared: Any, *args: Any, ordered: bool, **kwargs: Any) -> Any:
    mask = _mask(args, kwargs)
    found = JAX.io(_if(host, declared), declared, mask, *args, ordered=ordered, **kwargs)
    return _select(mask, found, declared)


def _jax_debug(host: Any, *args: Any, ordered: bool, **kwargs: Any) -> None:
    mask = _mask(args, kwargs)
    jax.debug.callback(_if(host, None), mask, *args, ordered=ordered, **kwargs)


def _io_by_debug(
    program: Program, host: Any, declared: Any, *args: Any, ordered: bool, **kwargs: Any
) -> Any:
    (callback,) = [c for c, _ in sites(program.block) if c.name == host.__name__]
    _jax_debug(host, *args, ordered=ordered, **kwargs)
    leaves = [jnp.asarray(x) for x in jax.tree.leaves((args, kwargs))]
    found = returned(callback, result_leaves(jnp, program, callback, leaves))
    return _select(_mask(args, kwargs), found, declared)


OURS_MASKED = Table(_where_pure, _where_io, _where_debug)
JAX_MASKED = Reference(Table(_jax_pure, _jax_io, _jax_debug), _io_by_debug)
