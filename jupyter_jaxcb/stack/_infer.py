"""``result="infer"``: what a host function returns is seen by running it once, on zeros."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_flatten, tree_map

INFER = "infer"
MAX_KEPT = 256  # answers, the oldest go first


class Inferred:
    """The declared result of a pure function that is run once for each shape of its arguments.

    Args:
        current: the function as it is now: a registered one may get another body.
    """

    def __init__(self, current: Callable[[], Callable[..., Any]]) -> None:
        self._current = current
        self._known: dict[Hashable, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result for arguments that have shape and dtype, as structs.

        Raises:
            ValueError: the function raises on zeros, or answers with what is no array.
        """
        function = self._current()
        leaves, tree = tree_flatten((args, kwargs))
        key = (function, tree, tuple(map(_key, leaves)))
        try:
            known = self._known.get(key)
        except TypeError:  # a static argument that is not hashable
            key, known = None, None
        if known is None:
            known = _dry_run(function, args, kwargs)
            if key is not None:
                self._known[key] = known
                while len(self._known) > MAX_KEPT:
                    del self._known[next(iter(self._known))]
        return known


def _key(leaf: Any) -> Hashable:
    return (tuple(leaf.shape), str(leaf.dtype)) if hasattr(leaf, "dtype") else leaf


def _dry_run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    name = getattr(function, "__name__", repr(function))
    try:
        answer = function(*tree_map(_zeros, args), **tree_map(_zeros, dict(kwargs)))
    except Exception as error:
        raise ValueError(
            f"cannot infer the result of {name}: run on zeros it raised {type(error).__name__}: "
            f"{error}. Declare it: result=jax.ShapeDtypeStruct(shape, dtype), or an expression "
            "over the parameters."
        ) from error
    return tree_map(lambda leaf: _struct(name, leaf), answer)


def _zeros(leaf: Any) -> Any:
    if not hasattr(leaf, "dtype"):  # a static argument
        return leaf
    zeros = np.zeros(tuple(leaf.shape), leaf.dtype)
    zeros.flags.writeable = False
    return zeros


def _struct(name: str, leaf: Any) -> Any:
    """As JAX would hold it: 64-bit numbers have 32 bits while x64 is off."""
    array = np.asarray(leaf)
    if array.dtype.kind in "OSUMm":
        raise ValueError(
            f"cannot infer the result of {name}: it answered with {leaf!r}, which is no array of "
            "numbers. Return one (np.asarray(...))."
        )
    return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))
