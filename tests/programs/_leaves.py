"""The arrays of typed host functions: small whole numbers, exact in every dtype.

Program texts with JAX's callbacks and with ours import these functions; `_plain` uses those that
take ``xp``, NumPy or jnp.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

MODULUS = 7


class Pair(NamedTuple):
    """A pytree node with named fields."""

    left: Any
    right: Any


def leaf(xp: Any, dtype: str, shape: tuple[int, ...], x: Any) -> Any:
    """Return an array of whole numbers from 0 to 6 that depend on the float32 `x`."""
    first = xp.floor(2 * xp.clip(xp.abs(xp.nan_to_num(x)), 0, 3))
    steps = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.float32)
    return cast(xp, (first + steps) % MODULUS, dtype)


def cast(xp: Any, whole: Any, dtype: str) -> Any:
    if dtype == "bool":
        return whole % 2 == 1
    if dtype.startswith("complex"):
        whole = whole + 1j * ((whole + 1) % 3)
    return whole.astype(jnp.dtype(dtype))


def real(xp: Any, array: Any) -> Any:
    """Return float32 numbers in which arrays of all dtypes can be added."""
    array = xp.asarray(array)
    array = array.real + 2 * array.imag if array.dtype.kind == "c" else array
    return array.astype(np.float32)


def made(
    dtype: str, shape: tuple[int, ...], x: Any, axis: int | None = None, size: int = 0,
    moving: bool = False,
) -> Any:  # fmt: skip
    """Return one argument, with a batch of `size` along `axis`, and with tangents if `moving`."""

    def one(x: Any) -> Any:
        array = leaf(jnp, dtype, shape, jax.lax.stop_gradient(x))
        if moving and jnp.issubdtype(array.dtype, jnp.inexact):
            x = jnp.nan_to_num(x)
            array += (x - jax.lax.stop_gradient(x)).astype(array.dtype)
        return array

    if axis is None:
        return one(x)
    return jax.vmap(one, out_axes=axis)(x + jnp.arange(size, dtype=np.float32))


def total(leaves: Any) -> Any:
    """Return a float32 that depends on all numbers in the results of a typed host function."""
    whole = sum((jnp.sum(real(jnp, x)) for x in leaves), jnp.float32(0))
    return 0.125 * (jax.lax.stop_gradient(whole) % MODULUS)


def arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    return [x for x in jax.tree.leaves((args, kwargs)) if not isinstance(x, str)]


def results(
    xp: Any,
    ranks: tuple[int, ...],
    declared: list[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[Any]:
    """Return what a host function returns, also for arguments with batch axes that broadcast."""
    numbers = [real(xp, x) for x in arguments(args, kwargs)]
    batches = [a.shape[: a.ndim - rank] for a, rank in zip(numbers, ranks, strict=True)]
    batch = np.broadcast_shapes(*batches)
    whole: Any = 1
    for a, rank in zip(numbers, ranks, strict=True):
        whole = whole + a.sum(axis=tuple(range(a.ndim - rank, a.ndim)))
    whole = xp.broadcast_to(xp.asarray(whole, np.float32), batch)
    made = []
    for struct in declared:
        mixed = whole.reshape((*batch, *[1] * len(struct.shape)))
        for a, own in zip(numbers, batches, strict=True):
            if a.shape[len(own) :] == struct.shape:
                mixed = mixed + 2 * a
                break
        mixed = xp.broadcast_to(mixed % MODULUS, (*batch, *struct.shape))
        made.append(cast(xp, mixed, np.dtype(struct.dtype).name))
    return made


def facts(args: tuple[Any, ...], kwargs: dict[str, Any], held: list[Any]) -> str:
    """Return all that a host function sees of its arguments, and keep the arrays in `held`."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    found = [str(tree)]
    for x in leaves:
        array = np.asarray(x)
        held.append((array, array.tobytes()))
        is_array = isinstance(x, (np.ndarray, jax.Array))
        found += [array.dtype.name, array.shape, array.tolist(), is_array, array.flags.writeable]
    return repr(found)


def noted(name: str, returned: Any, seen: set[Any]) -> list[Any]:
    """Return the leaves of a callback's result; add its structure and avals to `seen`."""
    leaves, tree = jax.tree.flatten(returned)
    seen.add((name, str(tree), *((x.shape, str(x.dtype), jax.typeof(x).weak_type) for x in leaves)))
    return leaves


def others(declared: Any) -> Any:
    """Return the result of a masked call that is not made."""
    return jax.tree.map(lambda struct: np.full(struct.shape, 3, struct.dtype), declared)


class Unmasked:
    """A callback of JAX as a function of the arguments alone."""

    def __init__(self, host: Any, declared: Any, callback: Any) -> None:
        self.host, self.declared, self.callback = host, declared, callback

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.callback(self.host, *args, **kwargs)


class Masked(Unmasked):
    """A callback of JAX with a method ``where``: its host function looks at the mask."""

    def where(self, mask: Any, *args: Any, otherwise: Any = None, **kwargs: Any) -> Any:
        @functools.wraps(self.host)
        def host(mask: Any, *args: Any, **kwargs: Any) -> Any:
            return self.host(*args, **kwargs) if mask else others(self.declared)

        found = self.callback(host, mask, *args, **kwargs)
        return jax.tree.map(lambda y, other: jnp.where(mask, y, other), found, otherwise)
