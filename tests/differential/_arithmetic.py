"""Arithmetic that is exact in every dtype, even if XLA fuses or reorders operations.

Before and after each step every number is an integer from 0 to 6. Intermediate numbers have an
absolute value below 128, which int8 and bfloat16 represent exactly. Slopes have an absolute value
of at most 2, and no step increases it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._programs import LEAVES

MODULUS = 7

State = dict[str, Any]


def reduced(x: Any) -> Any:
    """Return `x` modulo 7; for complex numbers, both parts modulo 7."""
    if jnp.iscomplexobj(x):
        return jax.lax.complex(jnp.real(x) % MODULUS, jnp.imag(x) % MODULUS)
    return x % MODULUS


def added(x: Any, y: Any) -> Any:
    """Return the sum of two leaves of the same dtype."""
    return x ^ y if x.dtype == bool else reduced(x + y)


def stir(x: Any, i: Any) -> Any:
    """Return values that depend on `x` and on `i`."""
    return x ^ (i % 2 == 1) if x.dtype == bool else reduced(x + i.astype(x.dtype))


def stirred(state: State, i: Any) -> State:
    """Return the state with every leaf stirred."""
    return {leaf: stir(x, jnp.asarray(i)) for leaf, x in state.items()}


def stopped(state: State) -> State:
    """Return the state without its tangents."""
    return {leaf: jax.lax.stop_gradient(x) for leaf, x in state.items()}


def spread(x: Any, size: int, axis: int | None) -> Any:
    """Return `x` with a new axis along which the values differ."""
    if axis is None:
        return x
    element = jnp.arange(size).reshape((size, *[1] * x.ndim)).astype(jnp.int32)
    return jnp.moveaxis(stir(x[None], element), 0, axis)


def gathered(x: Any, axis: int | None) -> Any:
    """Return a weighted sum along an axis, in which only the first entry has a slope."""
    if axis is None:
        return x
    x = jnp.moveaxis(x, axis, 0)
    weights = (1 + jnp.arange(x.shape[0])).reshape((-1, *[1] * (x.ndim - 1)))
    if x.dtype == bool:
        return jnp.sum(x * weights, axis=0) % 2 == 1
    total = jax.lax.stop_gradient(jnp.sum(x * weights.astype(x.dtype), axis=0, dtype=x.dtype))
    if jnp.issubdtype(x.dtype, jnp.inexact):
        first = jnp.sum(x[:1], axis=0)
        total = total + (first - jax.lax.stop_gradient(first))
    return reduced(total)


def signed(like: Any, x: Any) -> Any:
    """Return `x`, negated where `like` is odd; linear in `x`."""
    sign = (1 - 2 * (jnp.real(like) % 2)).astype(x.dtype)
    return jax.lax.stop_gradient(sign) * x


def numbers(program: Any) -> State:
    """Return the state that a program starts from."""
    state = {}
    for leaf in LEAVES:
        shape, dtype = program.aval(leaf)
        number = 2j if dtype.startswith("complex") else 2.0 if leaf == "x" else 2
        if program.weak and shape == () and leaf != "b" and jnp.asarray(number).dtype == dtype:
            state[leaf] = jnp.asarray(number)
            continue
        count = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) % 5
        count = count + 1j * ((count + 1) % 3) if dtype.startswith("complex") else count
        state[leaf] = jnp.asarray(count % 2 if leaf == "b" else count, dtype)
    return jax.block_until_ready(state)
