"""Look at values that may be bad on the host, if it can read them where they are.

Then a program has one branch for the values of a block, and no code that describes them: most
branches are never taken, but XLA compiles them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...stack.lowering import HOST_MEMORY
from ._note import Condition
from ._received import Facts, receive_bad, wants_bad
from ._reductions import Layout

_TESTS = {"nan": np.isnan, "inf": np.isinf, "both": lambda x: ~np.isfinite(x)}
_READABLE = {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}


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
        at = 0
        for facts, layout, shapes in self.values:
            if wants_bad(facts):
                own = zip(arrays[at:], shapes, strict=False)
                _look(facts, layout, [x.reshape(shape) for x, shape in own])
            at += len(shapes)
        return ()


def _look(facts: Facts, layout: Layout, arrays: Sequence[np.ndarray]) -> None:
    """Keep the first batch element that is bad, if one is."""
    is_bad = _TESTS[facts.note.options.bad.text]
    bad = _any_by_element(is_bad(arrays[0]), layout.own, layout.sizes)
    if layout.has_mask:
        bad = bad & _any_by_element(arrays[-1], layout.axes[-1], layout.sizes)
    if not bad.any():
        return
    element = int(bad.argmax())
    own = [
        _of_element(array, axes, layout.sizes, element)
        for array, axes in zip(arrays, layout.axes, strict=True)
    ]
    first = 1 + layout.inputs
    numbers = [n for x in own[:first] for n in (*_numbers(x), float(is_bad(x).any()))]
    receive_bad(facts, numbers, [element, *map(int, own[first : first + layout.loops])])


def _any_by_element(x: np.ndarray, axes: Sequence[int | None], sizes: Sequence[int]) -> np.ndarray:
    """Return whether any value is true, for each batch element, in the order of their numbers."""
    outer_first = [*zip(axes, sizes, strict=True)][::-1]
    own = [a for a, _ in outer_first if a is not None]
    found = np.moveaxis(x, own, range(len(own)))
    found = found.any(axis=tuple(range(len(own), x.ndim)))
    found = found.reshape([1 if a is None else size for a, size in outer_first])
    return np.broadcast_to(found, [size for _, size in outer_first]).reshape(-1)


def _of_element(
    x: np.ndarray, axes: Sequence[int | None], sizes: Sequence[int], element: int
) -> np.ndarray:
    at: list[Any] = [slice(None)] * x.ndim
    for axis, size in zip(axes, sizes, strict=True):  # innermost first
        element, place = divmod(element, size)
        if axis is not None:
            at[axis] = place
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
