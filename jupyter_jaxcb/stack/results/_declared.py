"""Determine the declared result of a function at registration."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection
from typing import Any

import jax
import numpy as np

from ..call import given_name, plain_signature, text_of
from ..errors import describe
from ._annotations import annotated_result
from ._array import shown
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
    name = given_name(function) or text_of(function)
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
    _check_leaves(result, function, name)
    return result


def _check_leaves(result: Any, function: Callable[..., Any], name: str) -> None:
    """Raise ValueError if a leaf is a number, a shape or a text, which never has both.

    Likewise if the whole is a text that is no expression.
    """
    __tracebackhide__ = True
    whole = _written(result, function, name)
    if callable(whole):
        return
    for leaf in jax.tree.leaves(whole, is_leaf=lambda one: bool(sizes_alone(one))):
        sizes = sizes_alone(leaf)
        plain = isinstance(leaf, bool | int | float | complex | str | bytes)
        if sizes or (plain and not hasattr(leaf, "dtype")):
            part = "it" if leaf is whole else repr(leaf)
            raise ValueError(
                f"cannot use result={shown(result)} of {name}: {part} has no shape and dtype. "
                f"{instead_of(leaf, not isinstance(result, str), sizes)}"
            )


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


_NO_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


def _literal(result: Any) -> Any:
    """Return the value of a text without names; an expression over parameters as it is."""
    if not isinstance(result, str):
        return result
    try:
        return ast.literal_eval(result.strip())
    except _NO_LITERAL:
        return result


def _written(result: Any, function: Callable[..., Any], name: str) -> Any:
    """Return what a text declares, with ``float`` for what depends on parameters or names."""
    __tracebackhide__ = True
    if not isinstance(result, str):
        return result
    try:
        body = ast.parse(result.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"cannot use result={result!r} of {name}: {describe(error)}. Write an expression over "
            'its parameters, such as "x", or jax.ShapeDtypeStruct(shape, dtype).'
        ) from None
    try:
        parameters = {*plain_signature(function).parameters, "bool", "int", "float", "complex"}
        return _structure(body, parameters)
    except Exception:  # without a signature, the call fails
        return float


def _structure(node: ast.AST, parameters: Collection[str]) -> Any:
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            numbers = any(isinstance(part, ast.Constant | ast.UnaryOp) for part in parts)
            if numbers and not all(_is_plain(part, parameters) for part in parts):
                return float  # it may be a shape: (n, 2)
            kind = tuple if isinstance(node, ast.Tuple) else list
            return kind(_structure(part, parameters) for part in parts)
        case ast.Dict(keys=keys, values=parts):
            names = [ast.literal_eval(key or ast.Pass()) for key in keys]
            values = [_structure(part, parameters) for part in parts]
            return dict(zip(names, values, strict=True))
    try:
        return ast.literal_eval(node)
    except _NO_LITERAL:
        return float


def _is_plain(node: ast.AST, parameters: Collection[str]) -> bool:
    """Return whether it is a structure, a parameter, or a literal."""
    if isinstance(node, ast.Tuple | ast.List | ast.Dict | ast.Constant | ast.UnaryOp):
        return True
    return isinstance(node, ast.Name) and node.id in parameters


def scalar_of(name: str) -> str | None:
    """Return the declaration of a scalar if `name` is a dtype such as ``float32``."""
    if len(name) == 1 or not name.isidentifier() or hasattr(builtins, name):
        return None
    try:
        held = jax.dtypes.canonicalize_dtype(np.dtype(name)).name
    except TypeError:  # not a dtype, or one that JAX does not have
        return None
    return f"{'np' if hasattr(np, held) else 'jnp'}.{held}"
