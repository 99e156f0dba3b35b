"""Results from jaxtyping annotations: ``-> Float[Array, "n+1"]``.

Annotations are recognized by their attributes ``dim_str`` and ``dtypes``, so jaxtyping need not be
installed.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..call import given_name, text_of
from ._array import shown
from ._dims import Dims

_PRNG_KEY = "prng_key"  # as jaxtyping writes it


class Annotated:
    """The result that a return annotation declares.

    Equal for equal annotations, so that rerunning a cell with the same function compares equal.
    """

    def __init__(self, function: Callable[..., Any], hints: dict[str, Any]) -> None:
        self._name = given_name(function) or text_of(function)
        self._signature = inspect.signature(function)
        self._hints = hints

    def __repr__(self) -> str:
        return f"<the annotation -> {_text(self._hints['return'])}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Annotated) and self._words() == other._words()

    def __hash__(self) -> int:
        return hash(self._words())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result as structs, for arguments that have shape and dtype.

        Raises:
            ValueError: if the arguments do not match the annotations, or the annotations do not
                determine the result.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}() {error}") from None
        bound.apply_defaults()
        dims, dtypes = Dims(), []
        try:
            for name, value in bound.arguments.items():
                self._bind(self._hints.get(name), value, name, dims, dtypes)
            return self._struct(self._hints["return"], dims, dtypes)
        except ValueError as error:
            given = ", ".join(f"{name}={shown(value)}" for name, value in bound.arguments.items())
            raise ValueError(
                f"cannot determine the result of {self._name}({given}) from its annotation "
                f"-> {_text(self._hints['return'])}: {error}"
            ) from None

    def _words(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, _text(hint)) for name, hint in self._hints.items())

    def _bind(self, hint: Any, value: Any, name: str, dims: Dims, dtypes: list[Any]) -> None:
        if hasattr(value, "shape") and hasattr(value, "dtype") and not _is_key(value):
            dtypes.append(np.dtype(value.dtype))
        if is_array_annotation(hint) and hasattr(value, "shape"):
            _check_dtype(hint, value, name)
            dims.bind(hint.dim_str, tuple(value.shape), name)
        elif typing.get_origin(hint) is tuple and isinstance(value, tuple | list):
            for place, (inner, one) in enumerate(zip(typing.get_args(hint), value, strict=False)):
                self._bind(inner, one, f"{name}[{place}]", dims, dtypes)

    def _struct(self, hint: Any, dims: Dims, dtypes: list[Any]) -> Any:
        if hint is None or hint is type(None):
            return None
        if is_array_annotation(hint):
            return jax.ShapeDtypeStruct(dims.shape(hint.dim_str), _result_dtype(hint, dtypes))
        return tuple(self._struct(inner, dims, dtypes) for inner in typing.get_args(hint))


def annotated_result(function: Callable[..., Any]) -> Annotated | None:
    """Return the result that the annotation of `function` declares; None if there is none.

    Raises:
        ValueError: if an annotation is a string that cannot be evaluated.
    """
    __tracebackhide__ = True
    if "return" not in getattr(function, "__annotations__", {}):
        return None
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise ValueError(
            f"cannot read the annotations of {given_name(function)}: {type(error).__name__}: "
            f"{error}. "
            "Import the missing name, or pass result=."
        ) from None
    hint = hints["return"]
    return Annotated(function, hints) if hint is type(None) or _declares(hint) else None


def is_array_annotation(hint: Any) -> bool:
    """Return whether it is a jaxtyping annotation, ``Float[Array, "n"]``."""
    return isinstance(getattr(hint, "dim_str", None), str) and hasattr(hint, "dtypes")


def _declares(hint: Any) -> bool:
    inner = typing.get_args(hint)
    is_tuple = typing.get_origin(hint) is tuple and bool(inner) and Ellipsis not in inner
    return is_array_annotation(hint) or (is_tuple and all(map(_declares, inner)))


def _check_dtype(hint: Any, value: Any, name: str) -> None:
    names, dtype = _names(hint), value.dtype
    fits = _PRNG_KEY in names if _is_key(value) else np.dtype(dtype) in _family(hint)
    if names and not fits:
        raise ValueError(
            f"{name} has dtype {dtype!s}, expected {_kind(hint)}. Convert {name}, or change its "
            "annotation."
        )


def _is_key(value: Any) -> bool:
    return jnp.issubdtype(value.dtype, jax.dtypes.extended)


def _result_dtype(hint: Any, dtypes: list[Any]) -> Any:
    """Return the only dtype that an annotation allows, or the promoted dtype of its arguments."""
    family = _family(hint)
    if _names(hint) and not family:
        raise ValueError(
            f"{_kind(hint)} is not an array of numbers. Annotate the key's data, "
            "UInt32[Array, '2'], or pass result=."
        )
    if len(family) == 1:
        return family[0]
    own = [dtype for dtype in dtypes if dtype in family or not family]
    if own:
        return jnp.result_type(*own)
    for default in (float, int, complex, bool):
        dtype = jax.dtypes.canonicalize_dtype(default)
        if dtype in family:
            return dtype
    raise ValueError(
        f"no argument is {_kind(hint)}, so its width is unknown. Name the width, as in Float32."
    )


def _family(hint: Any) -> list[np.dtype]:
    """Return the dtypes that an annotation allows; an empty list allows any dtype."""
    found = []
    for name in _names(hint):
        try:
            found.append(jnp.dtype(name))
        except TypeError:  # not in this version of numpy or ml_dtypes; a PRNG key
            continue
    return found


def _names(hint: Any) -> tuple[str, ...]:
    return tuple(hint.dtypes) if isinstance(hint.dtypes, tuple | list) else ()


def _kind(hint: Any) -> str:
    return _text(hint).partition("[")[0]


def _text(hint: Any) -> str:
    text = str(hint).removeprefix("<class '").removesuffix("'>")
    return (
        text.replace("jaxtyping.", "").replace("jaxlib._jax.", "").replace("jax.jaxlib._jax.", "")
    )
