"""Turn the flat operands of a call into the arguments of the host function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.tree_util import PyTreeDef, tree_structure, tree_unflatten

from ..call import HostCallback

Adapt = Callable[[Callable], Callable]  # from the host function to one of flat operands


def adapting(callback: HostCallback, count: int) -> Adapt:
    """Return a wrapper that lets the host function take flat operands.

    The wrapper returns the function unchanged if its arguments are flat already.
    """
    if takes_flat_operands(callback, count):
        return lambda function: function
    static = callback.static.values
    if callback.in_tree == _flat(count + len(static)) and min(static, default=-1) == count:
        after = tuple(static[i] for i in sorted(static))
        return lambda function: lambda *operands: function(*operands, *after)
    arguments = to_arguments(callback)

    def adapt(function: Callable) -> Callable:
        def call(*operands: np.ndarray) -> Any:
            args, kwargs = arguments(operands)
            return function(*args, **kwargs)

        return call

    return adapt


def takes_flat_operands(callback: HostCallback, count: int) -> bool:
    """Return whether the arguments of the host function are exactly the `count` operands."""
    return not callback.static.values and callback.in_tree == _flat(count)


def _flat(count: int) -> PyTreeDef:
    return tree_structure(((0,) * count, {}))


def to_arguments(callback: HostCallback) -> Callable[[Sequence[Any]], tuple[Any, Any]]:
    """Return a function from operands to ``(args, kwargs)``, static arguments included."""
    in_tree, static = callback.in_tree, callback.static.values

    def arguments(operands: Sequence[Any]) -> tuple[Any, Any]:
        leaves = operands
        if static:
            arrays = iter(operands)
            leaves = [static[i] if i in static else next(arrays) for i in range(in_tree.num_leaves)]
        return tree_unflatten(in_tree, leaves)

    return arguments
