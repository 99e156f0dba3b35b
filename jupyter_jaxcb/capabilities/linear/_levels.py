"""Apply a function of one batch element below the vmaps that are around a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from ...recording import AxisKind, VmapLevel

Flat = Callable[[Sequence[Any]], list[Any]]  # of arrays, returns arrays


def element_shape(shape: tuple[int, ...], kinds: Sequence[AxisKind]) -> tuple[int, ...]:
    """Return the shape of an operand for one batch element.

    Args:
        shape: its shape below the vmaps.
        kinds: what became of it in each vmap, see `VmapLevel.axes`.
    """
    return shape[sum(kind is not AxisKind.UNBATCHED for kind in kinds) :]


def below_vmaps(
    function: Flat,
    levels: Sequence[VmapLevel],
    given: Sequence[Sequence[AxisKind]],
    returned: Sequence[Sequence[AxisKind]],
) -> Flat:
    """Return `function` for arrays below the vmaps of a call, each mapped by `jax.vmap` again.

    Args:
        function: takes and returns the arrays of one batch element.
        levels: the vmaps, innermost first.
        given: for each vmap, the axes of the arrays that `function` takes.
        returned: for each vmap, the axes of the arrays that it returns. An array that the vmap does
            not map over is the sum over its batch elements.
    """
    for level, taken, made in zip(levels, given, returned, strict=True):
        function = _below(function, level.size, taken, made)
    return function


def _below(
    function: Flat, size: int, given: Sequence[AxisKind], returned: Sequence[AxisKind]
) -> Flat:
    axes = [None if kind in (AxisKind.UNBATCHED, AxisKind.SIZE1) else 0 for kind in given]

    def mapped(arrays: Sequence[Any]) -> list[Any]:
        elements = [
            x.squeeze(0) if kind is AxisKind.SIZE1 else x
            for x, kind in zip(arrays, given, strict=True)
        ]
        found = jax.vmap(function, in_axes=(axes,), axis_size=size)(elements)
        return [_summed(y, kind) for y, kind in zip(found, returned, strict=True)]

    return mapped


def _summed(y: Any, kind: AxisKind) -> Any:
    if kind is AxisKind.UNBATCHED:
        return y.sum(0, dtype=y.dtype)
    return y.sum(0, dtype=y.dtype, keepdims=True) if kind is AxisKind.SIZE1 else y
