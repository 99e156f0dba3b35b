"""Results that nobody declares.

``result="infer"`` runs a host function once, on zeros; NumPy's and SciPy's ufuncs know themselves
what they return.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_flatten, tree_map, tree_unflatten
from numpy.ma import MaskedArray

from ..core import describe, given_name
from ._array import shown
from ._casting import may_be_of_jax

INFER = "infer"
_OTHERS = (1, 100)  # of what an answer that is empty for zeros is looked at, too
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
    __tracebackhide__ = True
    name = given_name(function) or repr(function)
    try:
        answer = _answer(function, args, kwargs, 0)
    except Exception as error:
        raise ValueError(
            f"cannot infer the result of {name}: run on zeros it raised {describe(error)}. Declare "
            "it: result=jax.ShapeDtypeStruct(shape, dtype), or an expression over the parameters."
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
            f"JAX cannot tell ({describe(error)}). Return dicts whose keys are of "
            "one kind, lists, tuples and arrays."
        ) from error
    structs = [_struct(name, leaf) for leaf in leaves]
    if any(struct.size == 0 for struct in structs):
        _check_empty(name, function, args, kwargs, structs)
    return tree_unflatten(tree, structs)


def _check_empty(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    structs: list[Any],
) -> None:
    """Raises where an answer is empty for zeros, and not for other numbers.

    A callback whose result is empty is never called, so that nobody would see it.
    """
    __tracebackhide__ = True
    for number in _OTHERS:
        try:
            leaves = tree_flatten(_answer(function, args, kwargs, number))[0]
        except Exception:  # it is of the run on zeros what is declared
            continue
        for struct, other in zip(structs, leaves, strict=False):
            if np.shape(other) != struct.shape:
                raise ValueError(
                    f"cannot infer the result of {name}: its shape depends on the data, it is "
                    f"{struct.shape} for zeros and {np.shape(other)} where all is {number}. JAX "
                    "needs one shape for all data: declare it, "
                    "result=jax.ShapeDtypeStruct(shape, dtype), and fill up to it."
                )


def _answer(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], number: int
) -> Any:
    """What it answers where every element of every array is `number`."""
    full, named = tree_map(lambda leaf: _full(leaf, number), (args, dict(kwargs)))
    with jax.ensure_compile_time_eval():  # what it does with JAX is no part of the program
        return function(*full, **named)


def _full(leaf: Any, number: int) -> Any:
    if not hasattr(leaf, "dtype"):  # a static argument
        return leaf
    array = np.full(tuple(leaf.shape), number, leaf.dtype)
    array.flags.writeable = False
    return array


def _struct(name: str, leaf: Any) -> Any:
    """As JAX would hold it: 64-bit numbers have 32 bits while x64 is off."""
    __tracebackhide__ = True
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


@dataclasses.dataclass(frozen=True)
class UfuncResult:
    """The declared result of a ufunc: the shapes of its arguments broadcast, its own dtypes."""

    ufunc: np.ufunc

    def __call__(self, *args: Any) -> Any:
        """The result for arguments that have shape and dtype, as structs.

        Raises:
            ValueError: the ufunc does not take so many arguments, these shapes or dtypes.
        """
        name, count = self.ufunc.__name__, self.ufunc.nin
        given = ", ".join(map(repr, args))
        if len(args) != count:
            raise ValueError(f"{name} takes {count} arguments, not {len(args)}: {given}.")
        try:
            shape = np.broadcast_shapes(*(tuple(x.shape) for x in args))
            dtypes = [np.dtype(x.dtype) for x in args]
            answered = self.ufunc.resolve_dtypes((*dtypes, *[None] * self.ufunc.nout))[count:]
        except (ValueError, TypeError) as error:
            raise ValueError(f"cannot tell the result of {name}({given}): {error}") from None
        # While x64 is off, what it computes in 64 bits is rounded to 32.
        found = [
            jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype)) for dtype in answered
        ]
        return found[0] if len(found) == 1 else tuple(found)


def ufunc_result(function: Any) -> UfuncResult | None:
    """The result of an elementwise ufunc; None for anything else."""
    elementwise = isinstance(function, np.ufunc) and function.signature is None
    return UfuncResult(function) if elementwise else None
