"""``result="infer"``: what a host function returns is seen by running it once, on zeros."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_flatten, tree_map, tree_unflatten
from numpy.ma import MaskedArray

from ._leaf import shown
from ._numbers import may_be_of_jax

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
            ValueError: the function raises on zeros, or answers with what is no array, or is empty.
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
    __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
    name = getattr(function, "__name__", repr(function))
    zeros, named = tree_map(_zeros, args), tree_map(_zeros, dict(kwargs))
    try:
        with jax.ensure_compile_time_eval():  # what it does with JAX is no part of the program
            answer = function(*zeros, **named)
    except Exception as error:
        raise ValueError(
            f"cannot infer the result of {name}: run on zeros it raised {type(error).__name__}: "
            f"{error}. Declare it: result=jax.ShapeDtypeStruct(shape, dtype), or an expression "
            "over the parameters."
        ) from error
    if answer is None:
        raise ValueError(
            f"cannot infer the result of {name}: run on zeros it answered None. Let it return what "
            "it computes (a function that ends without return answers None)."
        )
    try:
        leaves, tree = tree_flatten(answer)
    except Exception as error:
        raise ValueError(
            f"cannot infer the result of {name}: it answered with {shown(answer)}, whose structure "
            f"JAX cannot tell ({type(error).__name__}: {error}). Return dicts whose keys are of "
            "one kind, lists, tuples and arrays."
        ) from error
    structs = [_struct(name, leaf) for leaf in leaves]
    given = [leaf for leaf in jax.tree.leaves((zeros, named)) if isinstance(leaf, np.ndarray)]
    for struct in structs:
        if struct.size == 0 and all(leaf.size for leaf in given):
            raise ValueError(
                f"cannot infer the result of {name}: run on zeros it answered with nothing, shape "
                f"{struct.shape}, as a function does whose answer has as many elements as the data "
                "say. JAX needs one shape for all data: declare it, result=jax.ShapeDtypeStruct("
                "shape, dtype), and fill up to it."
            )
    return tree_unflatten(tree, structs)


def _zeros(leaf: Any) -> Any:
    if not hasattr(leaf, "dtype"):  # a static argument
        return leaf
    zeros = np.zeros(tuple(leaf.shape), leaf.dtype)
    zeros.flags.writeable = False
    return zeros


def _struct(name: str, leaf: Any) -> Any:
    """As JAX would hold it: 64-bit numbers have 32 bits while x64 is off."""
    __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
    try:
        array = np.asarray(leaf)
    except Exception:  # of what numpy makes no array
        array = None
    if array is None or isinstance(leaf, MaskedArray) or not may_be_of_jax(array.dtype):
        raise ValueError(
            f"cannot infer the result of {name}: it answered with {shown(leaf)}, which is no array "
            "of numbers that JAX has. Return one (np.asarray(..., 'float32'))."
        )
    return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))
