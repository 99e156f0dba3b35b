"""Results of host functions, computed with NumPy on the host or with jnp as a reference."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._arithmetic import MODULUS
from ._programs import Callback, Program
from ._trees import nested


def result_leaves(
    xp: Any, program: Program, callback: Callback, leaves: list[Any]
) -> tuple[Any, ...]:
    """Return the results of a host function, computed with `xp`: NumPy or jnp.

    The arguments may have leading batch axes that broadcast.
    """
    ranks = [len(program.aval(leaf)[0]) for leaf in callback.args]
    ranks += [0] * (callback.literal is not None)
    numbers = [_single(xp, leaf) for leaf in leaves]
    batch = np.broadcast_shapes(
        *[a.shape[: a.ndim - rank] for a, rank in zip(numbers, ranks, strict=True)]
    )
    total = int(callback.name[1:]) + 1
    for a, rank in zip(numbers, ranks, strict=True):
        total = total + xp.sum(a, axis=tuple(range(a.ndim - rank, a.ndim)))
    total = xp.broadcast_to(xp.asarray(total), batch)
    results = []
    for leaf in callback.results:
        shape, dtype = program.aval(leaf)
        mixed = total.reshape((*batch, *[1] * len(shape)))
        if leaf in callback.args:
            mixed = mixed + 2 * numbers[callback.args.index(leaf)]
        results.append(_as(xp.broadcast_to(mixed % MODULUS, (*batch, *shape)), dtype))
    return tuple(results)


def _single(xp: Any, leaf: Any) -> Any:
    """Return `leaf` as float32 numbers, so that leaves of all dtypes can be added."""
    a = xp.asarray(leaf)
    a = a.real + 2 * a.imag if a.dtype.kind == "c" else a
    return a.astype(np.float32)


def _as(mixed: Any, dtype: str) -> Any:
    if dtype == "bool":
        return mixed % 2 == 1
    if dtype.startswith("complex"):
        mixed = mixed + 1j * (2 * mixed % MODULUS)
    return mixed.astype(jnp.dtype(dtype))


def returned(callback: Callback, results: tuple[Any, ...]) -> Any:
    """Return results in the structure that the callback declares."""
    if not results and callback.outputs is None:
        return None
    return nested(callback.outputs, results)


def declared(program: Program, callback: Callback) -> Any:
    """Return the declaration of the callback's results."""
    avals = [program.aval(leaf) for leaf in callback.results]
    if callback.declared == "array":
        structs: list[Any] = [np.zeros(shape, jnp.dtype(dtype)) for shape, dtype in avals]
    else:
        weak = callback.declared == "weak"
        structs = [jax.ShapeDtypeStruct(*aval, weak_type=weak) for aval in avals]
    return returned(callback, tuple(structs))
