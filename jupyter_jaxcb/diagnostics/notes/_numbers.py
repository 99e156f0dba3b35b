"""Reduce a value to a few numbers on the device."""

from __future__ import annotations

import functools
import math
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...recording import on_one_line
from ._note import Layout
from ._options import Options

MOST_ELEMENTS = 16  # of a batch, of which each has a row
_MOST_VALUES = 8  # of an array, which are sent too
_FEW = 1024  # values, of which a loop without vector instructions is as quick


# Jitted, so that a program has one function for all values of a shape, and JAX traces it once.
@functools.partial(jax.jit, static_argnums=(0, 1))
def numbers_in(options: Options, layout: Layout, *arrays: Any) -> Any:
    """Return what is sent of a value: an array of 32-bit integers for each batch element.

    They are the bits of its numbers (sum, minimum and maximum of the finite values, how many are
    NaN, infinite and finite, then the user's own and the values), and the steps.
    """
    x, mask, steps = real(arrays[0]), layout.mask(arrays), layout.step(arrays)
    total = layout.by_element(jnp.sum, x)
    if x.size <= _FEW:
        numbers = six_numbers(x, layout)
    else:
        numbers = jax.lax.cond(
            jnp.all(is_finite(total, mask)), lambda x: _of_finite(x, total, layout),
            lambda x: six_numbers(x, layout), x,
        )  # fmt: skip
    if mask is not None:
        nothing = jnp.array([0, jnp.inf, -jnp.inf, 0, 0, 0], numbers.dtype)
        numbers = jnp.where(mask[:, None], numbers, nothing)
    for name, reduce in options.reductions:
        own = layout.by_element(functools.partial(_number_by, name, reduce), arrays[0])
        own = own if mask is None else jnp.where(mask, own, jnp.nan)
        numbers = jnp.append(numbers, own[:, None].astype(numbers.dtype), axis=1)
    if values_sent(arrays[0].shape, layout.sizes):
        numbers = jnp.append(numbers, x.reshape(1, -1), axis=1)
    if len(numbers) > MOST_ELEMENTS:
        reductions = [jnp.sum, jnp.min, jnp.max, jnp.sum, jnp.sum, jnp.sum]
        reductions += [functools.partial(jnp.mean, where=mask)] * len(options.reductions)
        columns = zip(reductions, numbers.T, strict=True)
        numbers = jnp.stack([reduce(column) for reduce, column in columns])[None]
        steps = jnp.max(steps, axis=0)[None]
    bits = jax.lax.bitcast_convert_type(numbers, np.int32).reshape(len(numbers), -1)
    return jnp.concatenate([bits, steps], axis=1)


def rarely(
    every: int, send: Callable[[Any], list], options: Options, layout: Layout, *arrays: Any
) -> list:
    """Send the numbers of a value in every `every`-th step of the innermost loop."""
    turns, mask = layout.step(arrays)[:, -1] % every == 0, layout.mask(arrays)
    turn = jnp.any(turns if mask is None else turns & mask)
    return jax.lax.cond(
        turn, lambda *arrays: send(numbers_in(options, layout, *arrays)), lambda *_: [], *arrays
    )


@functools.partial(jax.jit, static_argnums=1)
def numbers_of(x: Any, options: Options) -> tuple[Any, Any]:
    """Return the numbers of an array that no program computes any more, and whether it is bad."""
    return numbers_in(options, Layout(0, (), ((),), ()), x), jnp.any(options.bad.test(x))


def values_sent(shape: Sequence[int], sizes: Sequence[int]) -> int:
    """Return how many values are sent with the numbers: those of small arrays outside of vmap."""
    count = math.prod(shape)
    return count if not sizes and 1 < count <= _MOST_VALUES else 0


def real(x: Any) -> Any:
    """Return real values of 32 or 64 bits; of complex values, the absolute ones."""
    x = jnp.abs(x) if jnp.iscomplexobj(x) else x
    return x if x.dtype == np.float64 else x.astype(np.float32)


def is_finite(total: Any, mask: Any) -> Any:
    """Return whether the sum of each batch element that counts is finite."""
    return jnp.isfinite(total) if mask is None else jnp.isfinite(total) | ~mask


def _of_finite(x: Any, total: Any, layout: Layout) -> Any:
    """Return the numbers of values that are finite."""
    least, most = (layout.by_element(reduce, x) for reduce in (jnp.min, jnp.max))
    none = jnp.zeros_like(total)
    own = math.prod(x.shape[axis] for axis in layout.others(x))
    return jnp.stack([total, least, most, none, none, jnp.full_like(total, own)], axis=-1)


def six_numbers(x: Any, layout: Layout, operand: int = 0) -> Any:
    """Return sum, minimum and maximum of the finite values, and how many are NaN, inf, finite.

    One reduction has all six, because XLA compiles each on its own. It does not use vector
    instructions.
    """
    finite = jnp.isfinite(x)
    floats = [jnp.where(finite, x, other) for other in (0, jnp.inf, -jnp.inf)]
    counts = [holds.astype(np.int32) for holds in (jnp.isnan(x), jnp.isinf(x), finite)]
    start = [*(x.dtype.type(number) for number in (0, np.inf, -np.inf)), *(np.int32(0),) * 3]
    six = jax.lax.reduce([*floats, *counts], start, _together, layout.others(x, operand))
    return jnp.stack([layout.in_order(each.astype(x.dtype), operand) for each in six], axis=-1)


def _together(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    combine = jax.lax.add, jax.lax.min, jax.lax.max, *(jax.lax.add,) * 3
    return [each(a, b) for each, a, b in zip(combine, some, others, strict=True)]


def _number_by(name: str, reduce: Callable[[Any], Any], x: Any, axis: Sequence[int]) -> Any:
    """Return the user's number of each batch element, whose axes are the others than `axis`."""
    batch = [a for a in range(x.ndim) if a not in axis]
    sizes = [x.shape[a] for a in batch]
    flat = x.transpose([*batch, *axis]).reshape(math.prod(sizes), *(x.shape[a] for a in axis))
    return jax.vmap(functools.partial(_checked, name, reduce))(flat).reshape(sizes)


def _checked(name: str, reduce: Callable[[Any], Any], x: Any) -> Any:
    """Return the user's number of an array."""
    option = on_one_line(f"{name}={getattr(reduce, '__name__', type(reduce).__name__)}")
    try:
        number = reduce(x)
    except Exception as error:
        error.add_note(f"raised by {option} of watching(), for an array of shape {x.shape}")
        raise
    cause = None
    try:
        aval = jax.typeof(number)
        is_complex = jnp.issubdtype(aval.dtype, np.complexfloating)
        is_key = jnp.issubdtype(aval.dtype, jax.dtypes.extended)
        if aval.shape == () and not is_complex and not is_key:
            return jnp.asarray(number)
        returned = aval.str_short()
    except Exception as error:  # of its methods, or of a number that no array holds
        returned, cause = _shown(number), error
    raise ValueError(
        f"{option} must return one real number for an array of shape {x.shape}, not {returned}. "
        "Reduce all axes in it, as jnp.linalg.norm does."
    ) from cause


def _shown(value: Any) -> str:
    try:
        return on_one_line(reprlib.repr(value))
    except Exception:  # an integer of thousands of digits
        return f"{type(value).__name__} that cannot be shown"
