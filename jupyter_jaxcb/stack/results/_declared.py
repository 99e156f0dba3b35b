"""Determine the declared result of a function at registration."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..call import given_name
from ._annotations import annotated_result
from ._expressions import instead_of, sizes_alone
from ._inferred import INFER, ufunc_result


class _Missing:
    def __repr__(self) -> str:
        return "<not given>"


MISSING: Any = _Missing()


def declared_result(function: Callable[..., Any], flavor: str, result: Any) -> Any:
    """Return `result`; if it is missing, the result of the annotation or of the ufunc.

    Raises:
        ValueError: if nothing declares the result, or the flavor does not support it.
    """
    __tracebackhide__ = True
    if result is MISSING:
        result = annotated_result(function) or ufunc_result(function) or MISSING
    article = "an" if flavor == "io" else "a"
    if is_infer(result) and flavor != "pure":
        raise ValueError(
            f'cannot use result="infer" for {article} {flavor} callback: it would run the function '
            "once on zeros, with its side effects. Declare the result."
        )
    name = given_name(function) or repr(function)
    nothing = nothing_in(result) if flavor == "pure" else None
    if nothing:
        raise ValueError(
            f"cannot register {name} as a pure callback that {nothing}: JAX would never call it. "
            "Register it as io (for side effects) or as debug (to observe values)."
        )
    if result is MISSING:
        annotated = "an annotation of out" if flavor == "buffer" else "a return annotation"
        nothing = ", None if it returns nothing" if flavor == "io" else ""
        raise ValueError(
            f"cannot register {name} as {article} {flavor} callback without its result. "
            'Pass result= (an expression over its parameters such as "x", or '
            f"jax.ShapeDtypeStruct(shape, dtype){nothing}), or write {annotated} with jaxtyping."
        )
    sizes = sizes_alone(_literal(result))
    if sizes:
        raise ValueError(
            f"cannot use result={result!r} of {name}: it has no shape and dtype. "
            f"{instead_of(result, False, sizes)}"
        )
    return result


def is_infer(result: Any) -> bool:
    """Return whether the result is inferred by running the function, see `_inferred`."""
    return isinstance(result, str) and result == INFER


def nothing_in(result: Any) -> str | None:
    """Describe a declared result that contains no array; None if it may contain one."""
    result = _literal(result)
    if callable(result) or jax.tree.leaves(result):
        return None
    hint = " (it is an empty tuple; a scalar is float)" if result == () else ""
    return f"returns nothing{hint}"


def _literal(result: Any) -> Any:
    """Return the value of a text without names; an expression over parameters as it is."""
    if not isinstance(result, str):
        return result
    try:
        return ast.literal_eval(result.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return result


def scalar_of(name: str) -> str | None:
    """Return the declaration of a scalar if `name` is a dtype such as ``float32``."""
    if len(name) == 1 or not name.isidentifier() or hasattr(builtins, name):
        return None
    try:
        held = jax.dtypes.canonicalize_dtype(np.dtype(name)).name
    except TypeError:  # not a dtype, or one that JAX does not have
        return None
    return f"{'np' if hasattr(np, held) else 'jnp'}.{held}"
