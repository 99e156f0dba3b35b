"""Batching rules that learn the name of the axis that a vmap maps.

Where JAX hands over no description of the axis, axes have no names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._private import optional_module
from ._required import Primitive, batching

_private = optional_module("jax._src.interpreters.batching")


def register_batching(primitive: Primitive, rule: Callable[..., tuple[Any, Sequence[Any]]]) -> None:
    """Register a batching rule, which gets the operands, their axes and the keyword `axis_name`.

    The name is empty if the axis has none.
    """
    fancy = getattr(_private, "fancy_primitive_batchers", None)
    if fancy is None:
        batching.primitive_batchers[primitive] = lambda args, dims, **params: rule(
            args, dims, axis_name="", **params
        )
        return

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        __tracebackhide__ = True
        if all(dim is None for dim in dims):  # JAX does not look for it in such a rule
            results = primitive.bind(*args, **params)
            return results, [None] * len(results)
        return rule(args, dims, axis_name=_name(axis), **params)

    fancy[primitive] = batch


def _name(axis: Any) -> str:
    """Return the name of an axis, or those of the mesh axes that it is spread over: ``"x,y"``."""
    name = getattr(axis, "name", None)
    if isinstance(name, str):
        return name
    mesh_axes = getattr(axis, "spmd_name", None) or ()
    return ",".join(map(str, mesh_axes if isinstance(mesh_axes, tuple) else (mesh_axes,)))
