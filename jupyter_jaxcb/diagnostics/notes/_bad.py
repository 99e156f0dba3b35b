"""Find values that may be bad on the device, and look at them: on the host, if it can read them.

Then a program has one branch for the values of a block, and no code that describes them: most
branches are never taken, but XLA compiles them all.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...stack.lowering import HOST_MEMORY
from ._note import Layout
from ._numbers import is_finite, real, six_numbers
from ._options import Condition
from ._store import Facts, Store, receiver

MOST_SUMMED = 4096  # values that are copied to be summed together with others
_TESTS = {"nan": np.isnan, "inf": np.isinf, "both": lambda x: ~np.isfinite(x)}
_READABLE = {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}


# Jitted, so that a program has one function for all values of a shape, and JAX traces it once.
@functools.partial(jax.jit, static_argnums=(0, 1))
def is_suspect(bad: Condition, layout: Layout, *arrays: Any) -> Any:
    """Return whether a value can be bad.

    One sum tells whether all values are finite, which is the quickest of all tests: XLA computes
    it with vector instructions. It can be infinite without.
    """
    value, mask = arrays[0], layout.mask(arrays)
    if not bad.is_finite:
        return jnp.any(bad.test(value))
    if mask is None:
        return jnp.logical_not(jnp.isfinite(jnp.sum(real(value))))
    return jnp.logical_not(jnp.all(is_finite(layout.by_element(jnp.sum, real(value)), mask)))


def sign_of(bad: Condition, layout: Layout, *arrays: Any) -> Any:
    """Return whether a value can be bad, or a few values whose sum is not finite if it can."""
    value, *masks = arrays
    is_summed = value.dtype in (np.float32, np.float16, jnp.bfloat16)
    if masks or value.size > MOST_SUMMED or not is_summed:
        return is_suspect(bad, layout, *arrays)
    return real(value).reshape(-1)


def send_if_bad(send: Any, facts: Facts, layout: Layout, *arrays: Any) -> list:
    """Reduce the first batch element that is bad, and its inputs, and send the numbers."""
    is_bad = facts.note.options.bad.test

    def send_bad(*arrays: Any) -> list:
        bad, mask = layout.by_element(jnp.any, is_bad(arrays[0])), layout.mask(arrays)
        bad = bad if mask is None else bad & mask
        element, steps = jnp.argmax(bad), layout.step(arrays)

        def details(*arrays: Any) -> list:
            parts = []
            for n, x in enumerate(arrays):
                its_bad = layout.by_element(jnp.any, is_bad(x), n)
                parts.append(jnp.append(six_numbers(real(x), layout, n)[element], its_bad[element]))
            wide = jnp.result_type(*parts)
            numbers = jnp.concatenate([part.astype(wide) for part in parts])
            at = jnp.append(element.astype(np.int32), steps[element])
            return send(numbers, at, call=received)

        values = arrays[: 1 + layout.inputs]
        return jax.lax.cond(jnp.any(bad), details, lambda *_: [], *values)

    def received(numbers: np.ndarray, at: np.ndarray) -> tuple:
        if (store := receiver()) is not None:
            store.add_bad(facts, numbers.tolist(), at.tolist())
        return ()

    suspect = is_suspect(facts.note.options.bad, layout, *arrays)
    return jax.lax.cond(suspect, send_bad, lambda *_: [], *arrays)


def is_readable(ctx: Any, bad: Condition, layout: Layout) -> bool:
    """Return whether the host can look at the value and its inputs."""
    arrays = ctx.avals_in[: 1 + layout.inputs]
    return (
        ctx.module_context.platforms[0] in HOST_MEMORY
        and bad.text in _TESTS
        and all(aval.dtype.name in _READABLE for aval in arrays)
    )


class Suspects:
    """What one call gets of the values of a block, of which one or more may be bad."""

    def __init__(self) -> None:
        # In the order of the arguments, with the shapes of each.
        self.values: list[tuple[Facts, Layout, list[tuple[int, ...]]]] = []

    def __call__(self, *arrays: np.ndarray) -> tuple:
        start, store = 0, receiver()
        for facts, layout, shapes in self.values:
            if store is not None and store.wants_bad(facts):
                own = zip(arrays[start:], shapes, strict=False)
                _look(store, facts, layout, [x.reshape(shape) for x, shape in own])
            start += len(shapes)
        return ()


def _look(store: Store, facts: Facts, layout: Layout, arrays: list[np.ndarray]) -> None:
    """Keep the first batch element that is bad, if one is."""
    is_bad = _TESTS[facts.note.options.bad.text]
    bad, mask = layout.by_element(np.any, is_bad(arrays[0]), xp=np), layout.mask(arrays, np)
    bad = bad if mask is None else bad & mask
    if not bad.any():
        return
    element = int(bad.argmax())
    own = [_of_element(x, layout, n, element) for n, x in enumerate(arrays)]
    values = own[: 1 + layout.inputs]
    numbers = [number for x in values for number in (*_numbers(x), float(is_bad(x).any()))]
    store.add_bad(facts, numbers, [element, *(int(own[n]) for n in layout.steps)])


def _of_element(x: np.ndarray, layout: Layout, operand: int, element: int) -> np.ndarray:
    at: list[Any] = [slice(None)] * x.ndim
    for axis, size in zip(layout.axes[operand], layout.sizes, strict=True):  # innermost first
        element, index = divmod(element, size)
        if axis is not None:
            at[axis] = index
    return x[tuple(at)]


def _numbers(x: np.ndarray) -> tuple[float, ...]:
    """Return sum, minimum and maximum of the finite values, and how many are NaN, inf, finite."""
    x = np.abs(x) if np.iscomplexobj(x) else x
    x = x.astype(np.float32 if x.dtype.itemsize < 8 else np.float64, copy=False)
    finite = x[np.isfinite(x)]
    nan = int(np.isnan(x).sum())
    inf = x.size - nan - finite.size
    if not finite.size:
        return 0.0, math.inf, -math.inf, nan, inf, 0
    return float(finite.sum()), float(finite.min()), float(finite.max()), nan, inf, finite.size
