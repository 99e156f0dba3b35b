"""What declares the result of a function when it is registered, and what certainly does not."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import CodeType
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_leaves, tree_map

from ..call import given_name, plain_signature, text_of
from ..errors import describe
from ._annotations import annotated_result
from ._array import shown
from ._expressions import instead_of, parsed, sizes_alone
from ._inferred import INFER, Inferred, is_elementwise


class _Missing:
    def __repr__(self) -> str:
        return "<not given>"


MISSING: Any = _Missing()


def declared_result(function: Callable[..., Any], flavor: str, result: Any) -> Any:
    """Return `result`; if it is missing, that of the annotation, or a ufunc as its own declaration.

    ``"infer"`` becomes an `Inferred`.

    Raises:
        ValueError: if nothing declares the result, or the flavor does not support it.
    """
    __tracebackhide__ = True
    article = "an" if flavor == "io" else "a"
    if result is MISSING:
        result = function if is_elementwise(function) else annotated_result(function) or MISSING
    if isinstance(result, str) and result == INFER:
        if flavor == "pure":
            return Inferred()
        raise ValueError(
            f'cannot use result="infer" for {article} {flavor} callback: it would run the function '
            "once on zeros, with its side effects. Declare the result."
        )
    name = given_name(function) or text_of(function)
    if result is MISSING:
        annotated = "an annotation of out" if flavor == "buffer" else "a return annotation"
        nothing = ", None if it returns nothing" if flavor == "io" else ""
        raise ValueError(
            f"cannot register {name} as {article} {flavor} callback without its result. "
            'Pass result= (an expression over its parameters such as "x", or '
            f"jax.ShapeDtypeStruct(shape, dtype){nothing}), or write {annotated} with jaxtyping."
        )
    if isinstance(result, str):
        try:
            parts, _ = parsed(result)
        except (SyntaxError, ValueError) as error:
            raise ValueError(
                f"cannot use result={result!r} of {name}: {describe(error)}. Write an expression "
                'over its parameters, such as "x", or jax.ShapeDtypeStruct(shape, dtype).'
            ) from None
        if isinstance(parts, CodeType) and parts.co_names:
            return result  # a call knows what the names declare
    nothing = nothing_in(result) if flavor == "pure" else None
    if nothing:
        raise ValueError(
            f"cannot register {name} as a pure callback that {nothing}: JAX would never call it. "
            "Register it as io (for side effects) or as debug (to observe values)."
        )
    _check_leaves(result, function, name)
    return result


def _check_leaves(result: Any, function: Callable[..., Any], name: str) -> None:
    """Raise ValueError if a leaf is a number, a shape or a text, which never has both."""
    __tracebackhide__ = True
    whole = result
    if isinstance(result, str):
        try:
            parameters = {*plain_signature(function).parameters, "bool", "int", "float", "complex"}
        except Exception:  # without a signature, the call fails
            return

        def may_be_shape(node: Any) -> bool:  # numbers and names of no parameters, as in (n, 2)
            if not isinstance(node, tuple | list):
                return False
            codes = [part for part in node if isinstance(part, CodeType)]
            named = {name for code in codes for name in code.co_names}
            return not named <= parameters and any(_constant(code) is not float for code in codes)

        whole = tree_map(_constant, parsed(result)[0], is_leaf=may_be_shape)
    if callable(whole):
        return
    for leaf in tree_leaves(whole, is_leaf=lambda node: bool(sizes_alone(node))):
        sizes = sizes_alone(leaf)
        plain = isinstance(leaf, bool | int | float | complex | str | bytes)
        if sizes or (plain and not hasattr(leaf, "dtype")):
            part = "it" if leaf is whole else repr(leaf)
            raise ValueError(
                f"cannot use result={shown(result)} of {name}: {part} has no shape and dtype. "
                f"{instead_of(leaf, not isinstance(result, str), sizes)}"
            )


def _constant(part: Any) -> Any:
    """Return the value of a part of an expression without names; ``float`` for others."""
    if not isinstance(part, CodeType) or part.co_names:
        return float
    try:
        return eval(part, {"__builtins__": {}})
    except Exception:  # it fails at the call, with a message
        return float


def nothing_in(result: Any) -> str | None:
    """Describe a declared result that contains no array; None if it may contain one."""
    if isinstance(result, str):
        result = tree_map(_constant, parsed(result)[0])
    if callable(result) or tree_leaves(result):
        return None
    hint = " (it is an empty tuple; a scalar is float)" if result == () else ""
    return f"returns nothing{hint}"


def scalar_of(name: str) -> str | None:
    """Return the declaration of a scalar if `name` is a dtype such as ``float32``."""
    if len(name) == 1 or not name.isidentifier() or hasattr(builtins, name):
        return None
    try:
        held = jax.dtypes.canonicalize_dtype(np.dtype(name)).name
    except TypeError:  # not a dtype, or one that JAX does not have
        return None
    return f"{'np' if hasattr(np, held) else 'jnp'}.{held}"
