"""What a registration is given: a function, and what it is said to return."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..core import given_name
from ._annotations import annotated_result
from ._array import declaration
from ._inferred import INFER, ufunc_result


class _Missing:
    def __repr__(self) -> str:
        return "<not given>"


MISSING: Any = _Missing()


def declared_result(function: Callable[..., Any], flavor: str, result: Any) -> Any:
    """`result`, or what the annotation of `function` says instead, or a ufunc itself."""
    __tracebackhide__ = True
    if result is MISSING:
        result = annotated_result(function) or ufunc_result(function) or MISSING
    article = "an" if flavor == "io" else "a"
    if is_infer(result) and flavor != "pure":
        raise ValueError(
            f"cannot infer the result of {article} {flavor} callback: "
            'result="infer" runs the function once, on zeros, and what it does would be done. '
            "Declare the result."
        )
    name = given_name(function) or repr(function)
    nothing = nothing_in(result) if flavor == "pure" else None
    if nothing:
        raise ValueError(
            f"cannot register {name} as a pure callback that {nothing}: JAX never calls one whose "
            "result is not used. Register it as io, which is called as often as the program says, "
            "or as debug, which only looks on."
        )
    if result is MISSING:
        annotated = "an annotation of out" if flavor == "buffer" else "a return annotation"
        nothing = " or result=None if it returns nothing" if flavor == "io" else ""
        raise ValueError(
            f"cannot register {name} as {article} {flavor} callback without its result: "
            'say what it returns, as an expression over its parameters (result="x"), as '
            f"jax.ShapeDtypeStruct(shape, dtype){nothing}, or in {annotated}, "
            "one of jaxtyping's (from jaxtyping import Array, Float)."
        )
    return result


def is_infer(result: Any) -> bool:
    """Whether the result is to be seen by running the function, see `_inferred`."""
    return isinstance(result, str) and result == INFER


def nothing_in(result: Any) -> str | None:
    """What to say of a declared result in which no array is; None: there may be one."""
    if isinstance(result, str):
        try:
            result = ast.literal_eval(result)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None  # an expression over parameters, "infer"
    if callable(result) or jax.tree.leaves(result):
        return None
    scalar = declaration(np.dtype("float32"))
    hint = f" (it is an empty tuple; a scalar is {scalar})" if result == () else ""
    return f"returns nothing{hint}"


def scalar_of(expression: str) -> str | None:
    """What declares a scalar, where `expression` is a dtype: ``float64``, ``np.float32``."""
    module, _, name = expression.rpartition(".")
    if module not in ("", "np", "jnp", "numpy") or len(name) == 1 or not name.isidentifier():
        return None
    try:
        return declaration(np.dtype(name))
    except TypeError:  # no dtype, or none of JAX's
        return None
