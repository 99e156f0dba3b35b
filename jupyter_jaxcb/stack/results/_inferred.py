"""Results that are inferred instead of declared.

``result="infer"`` runs a host function once, on zeros. Ufuncs of NumPy and SciPy know their result
shapes and dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_flatten, tree_map, tree_unflatten
from numpy.ma import MaskedArray

from ..call import given_name, text_of
from ..errors import describe
from ._array import may_be_of_jax, shown

INFER = "infer"
_OTHERS = (1, 100)  # further fill values to try if the result is empty for zeros
_MOST_KEPT = 256  # inferred results of a registration; the oldest are dropped first


class Inferred:
    """The result of a pure function, inferred by one run for each combination of shapes."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def __call__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return the result as structs, for arguments that have shape and dtype.

        Raises:
            ValueError: if the function raises on zeros, or does not return arrays.
        """
        __tracebackhide__ = True
        leaves, tree = tree_flatten((args, dict(kwargs)))
        x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]
        key = (function, x64, tree, tuple(map(_key, leaves)))
        try:
            known = self._known.get(key)
        except TypeError:  # a static argument that is not hashable
            return _dry_run(function, args, kwargs)
        if known is None:
            known = self._known[key] = _dry_run(function, args, kwargs)
            while len(self._known) > _MOST_KEPT:
                del self._known[next(iter(self._known))]
        return known


def _key(leaf: Any) -> Hashable:
    return (tuple(leaf.shape), str(leaf.dtype)) if hasattr(leaf, "dtype") else leaf


def _dry_run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    __tracebackhide__ = True
    name = given_name(function) or text_of(function)
    try:
        result = _result_for(function, args, kwargs, 0)
    except Exception as error:
        given = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())])
        error.add_note(f"raised when result='infer' ran {name}({given}) on zeros")
        raise ValueError(
            f"cannot infer the result of {name}: run on zeros it raised {describe(error)}. Declare "
            "it: result=jax.ShapeDtypeStruct(shape, dtype), or an expression over the parameters. "
            f"It was run as {name}({given})."
        ) from error
    if result is None:
        raise ValueError(
            f"cannot infer the result of {name}: run on zeros it returned None. Return the "
            "computed arrays (is a return statement missing?)."
        )
    try:
        leaves, tree = tree_flatten(result)
    except Exception as error:
        raise ValueError(
            f"cannot infer the result of {name}: it returned {shown(result)}, which JAX cannot "
            f"flatten ({describe(error)}). Return tuples, lists, arrays, and dicts with keys of "
            "one type."
        ) from error
    structs = [_struct(name, leaf) for leaf in leaves]
    if any(struct.size == 0 for struct in structs):
        # A callback with an empty result is never called, so it must be empty for any data.
        for number in _OTHERS:
            try:
                leaves = tree_flatten(_result_for(function, args, kwargs, number))[0]
            except Exception:  # only the run on zeros must succeed
                continue
            for struct, leaf in zip(structs, leaves, strict=False):
                if np.shape(leaf) != struct.shape:
                    raise ValueError(
                        f"cannot infer the result of {name}: its shape depends on the data (zeros "
                        f"give {struct.shape}, arrays of {number} give {np.shape(leaf)}). Declare "
                        "one shape, result=jax.ShapeDtypeStruct(shape, dtype), and pad to it."
                    )
    return tree_unflatten(tree, structs)


def _result_for(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], number: int
) -> Any:
    """Return the result of `function` for arrays whose elements are all `number`."""

    def full(leaf: Any) -> Any:
        if not hasattr(leaf, "dtype"):  # a static argument
            return leaf
        array = np.full(tuple(leaf.shape), number, leaf.dtype)
        array.flags.writeable = False
        return array

    positional, named = tree_map(full, (args, dict(kwargs)))
    with jax.ensure_compile_time_eval():  # JAX operations in it must not become part of a program
        return function(*positional, **named)


def _struct(name: str, leaf: Any) -> Any:
    """Return the struct of a leaf in JAX: 64-bit numbers become 32-bit while x64 is off."""
    __tracebackhide__ = True
    try:
        array = np.asarray(leaf)
    except Exception:  # NumPy cannot convert it
        array = None
    if array is None or isinstance(leaf, MaskedArray) or not may_be_of_jax(array.dtype):
        raise ValueError(
            f"cannot infer the result of {name}: it returned {shown(leaf)}, which is not an array "
            "of a JAX dtype. Return np.asarray(..., 'float32')."
        )
    return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))


def is_elementwise(function: Any) -> bool:
    """Return whether it is a ufunc whose result has the broadcast shape of its arguments."""
    return isinstance(function, np.ufunc) and function.signature is None


def ufunc_result(ufunc: np.ufunc, *args: Any) -> Any:
    """Return the result of an elementwise ufunc as structs: the broadcast shape, its own dtypes.

    Raises:
        ValueError: if the ufunc does not accept this number of arguments, shapes or dtypes.
    """
    name, count = ufunc.__name__, ufunc.nin
    given = ", ".join(map(repr, args))
    if len(args) != count:
        raise ValueError(f"{name} takes {count} arguments, not {len(args)}: {given}.")
    for number, value in enumerate(args, 1):
        if not hasattr(value, "shape"):  # a string, None, a list
            raise ValueError(
                f"{name} got {shown(value)} as argument {number}, which is not a number or an "
                "array. Pass numbers or arrays."
            )
    try:
        shape = np.broadcast_shapes(*(tuple(x.shape) for x in args))
        dtypes = [np.dtype(x.dtype) for x in args]
        resolved = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))[count:]
    except (ValueError, TypeError) as error:
        raise ValueError(f"cannot determine the result of {name}({given}): {error}") from None
    # While x64 is off, 64-bit results are rounded to 32 bits.
    held = map(jax.dtypes.canonicalize_dtype, resolved)
    structs = tuple(jax.ShapeDtypeStruct(shape, dtype) for dtype in held)
    return structs[0] if len(structs) == 1 else structs
