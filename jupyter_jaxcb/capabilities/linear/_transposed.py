"""Apply the transposes that JAX derives, to pytrees that may have integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import tree_flatten, tree_leaves, tree_unflatten


def is_inexact(x: Any) -> bool:
    """Return whether an array may have a derivative."""
    return jnp.issubdtype(x.dtype, jnp.inexact)


def inexact(tree: Any) -> list[Any]:
    """Return the leaves of a pytree that may have a derivative."""
    return [x for x in tree_leaves(tree) if is_inexact(x)]


def transposed(function: Callable[[Any], Any], like: Any, ct: Any) -> Any:
    """Apply the transpose of a linear function of a pytree `like` to `ct`; integers are zero."""
    leaves, tree = tree_flatten(like)

    def filled(arrays: Sequence[Any]) -> Any:
        given = iter(arrays)
        return tree_unflatten(
            tree, [next(given) if is_inexact(x) else jnp.zeros_like(x) for x in leaves]
        )

    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inexact(leaves)]
    (back,) = jax.linear_transpose(lambda arrays: inexact(function(filled(arrays))), structs)(
        inexact(ct)
    )
    return filled(back)
