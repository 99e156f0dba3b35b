"""Results from jaxtyping annotations: ``-> Float[Array, "n+1"]``.

Annotations are recognized by their attributes ``dim_str`` and ``dtypes``, so jaxtyping need not be
installed. Arguments bind dimensions, results look them up. The grammar is jaxtyping's: names;
``*name`` and ``...`` for any number of dimensions; ``_`` and ``_name`` for unchecked dimensions;
``#`` for dimensions that may be 1; numbers; expressions such as ``n+1``.
"""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..call import given_name, text_of
from ._array import shown

_PRNG_KEY = "prng_key"  # as jaxtyping writes it
_ARITHMETIC: Any = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Constant,
    ast.Load,
)  # fmt: skip


class Annotated:
    """The result that a return annotation declares.

    Equal for equal annotations, so that rerunning a cell with the same function compares equal.
    """

    def __init__(self, function: Callable[..., Any], hints: dict[str, Any]) -> None:
        self._name = given_name(function) or text_of(function)
        self._signature = inspect.signature(function)
        self._hints = hints
        self._words = tuple((name, _text(hint)) for name, hint in hints.items())

    def __repr__(self) -> str:
        return f"<the annotation -> {_text(self._hints['return'])}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Annotated) and self._words == other._words

    def __hash__(self) -> int:
        return hash(self._words)

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
        dims = _Dims()
        try:
            for name, value in bound.arguments.items():
                dims.match(self._hints.get(name), value, name)
            return dims.result(self._hints["return"])
        except ValueError as error:
            given = ", ".join(f"{name}={shown(value)}" for name, value in bound.arguments.items())
            raise ValueError(
                f"cannot determine the result of {self._name}({given}) from its annotation "
                f"-> {_text(self._hints['return'])}: {error}"
            ) from None


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


def _is_array(hint: Any) -> bool:
    return isinstance(getattr(hint, "dim_str", None), str) and hasattr(hint, "dtypes")


def _declares(hint: Any) -> bool:
    inner = typing.get_args(hint)
    is_tuple = typing.get_origin(hint) is tuple and bool(inner) and Ellipsis not in inner
    return _is_array(hint) or (is_tuple and all(map(_declares, inner)))


class _Dims:
    """What the arguments of one call determine: sizes of dimensions, and dtypes."""

    def __init__(self) -> None:
        # By name: the size, for groups the shape, and the argument with it. None: several shapes.
        self._bound: dict[str, tuple[Any, str]] = {}
        self._ones: dict[str, int] = {}  # names marked with # whose dimension was 1
        self._dtypes: list[np.dtype] = []

    def match(self, hint: Any, value: Any, arg: str) -> None:
        """Bind what the annotation of an argument names.

        Raises:
            ValueError: if the argument does not match it, or contradicts an earlier one.
        """
        is_key = hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jax.dtypes.extended)
        if hasattr(value, "shape") and hasattr(value, "dtype") and not is_key:
            self._dtypes.append(np.dtype(value.dtype))
        if _is_array(hint) and hasattr(value, "shape"):
            names, family = _family(hint)
            if names and not (_PRNG_KEY in names if is_key else value.dtype in family):
                raise ValueError(
                    f"{arg} has dtype {value.dtype!s}, expected {_kind(hint)}. Convert {arg}, or "
                    "change its annotation."
                )
            self._match_shape(hint.dim_str, tuple(value.shape), arg)
        elif typing.get_origin(hint) is tuple and isinstance(value, tuple | list):
            for place, (inner, part) in enumerate(zip(typing.get_args(hint), value, strict=False)):
                self.match(inner, part, f"{arg}[{place}]")

    def result(self, hint: Any) -> Any:
        """Return the structs of a result.

        Raises:
            ValueError: if the arguments do not determine them.
        """
        if hint is None or hint is type(None):
            return None
        if not _is_array(hint):
            return tuple(map(self.result, typing.get_args(hint)))
        shape: list[int] = []
        for token, name, is_group in _tokens(hint.dim_str):
            if not is_group:
                shape.append(self._size(name))
                continue
            if f"*{name}" not in self._bound:
                raise ValueError(
                    f"no argument determines {token!r}. Annotate the argument that does, or "
                    "pass result=."
                )
            group = self._bound[f"*{name}"][0]
            if group is None:
                raise ValueError(
                    f"{token!r} is ambiguous: it has different dimensions in different "
                    "arguments. Name the group, as in *n, or pass result=."
                )
            shape += group
        return jax.ShapeDtypeStruct(tuple(shape), self._dtype(hint))

    def _match_shape(self, dims: str, shape: tuple[int, ...], arg: str) -> None:
        tokens = _tokens(dims)
        groups = [place for place, (_, _, is_group) in enumerate(tokens) if is_group]
        if len(groups) > 1:
            raise ValueError(
                f"cannot match {dims!r} of {arg}: it has two groups of any number of dimensions. "
                "Use only one."
            )
        more = len(shape) - (len(tokens) - len(groups))  # dimensions of the group
        if more < 0 or (more and not groups):
            least = "at least " if groups else ""
            raise ValueError(
                f"{arg} has shape {shape}, expected {least}{len(tokens) - len(groups)} dimensions "
                f"for {dims!r}. Reshape {arg}, or change its annotation."
            )
        sizes: list[Any] = list(shape)
        for place in groups:
            sizes[place : place + more] = [shape[place : place + more]]
        # The group first, then names: expressions may name dimensions to the right of them.
        pairs = sorted(
            zip(tokens, sizes, strict=True),
            key=lambda pair: (not pair[0][2], not pair[0][1].isidentifier()),
        )
        for (token, name, is_group), size in pairs:
            if name.startswith("_"):
                continue
            if is_group:
                self._bind_group(token, f"*{name}", size, arg)
            elif "#" in token and size == 1:
                self._ones[name] = 1
            elif name.isidentifier():
                self._bind(name, size, arg)
            elif (wanted := self._size(name)) != size:
                value = "" if token.isdigit() else f" = {wanted}"
                raise ValueError(
                    f"{arg} has a dimension of size {size}, expected {token}{value}. Reshape "
                    f"{arg}, or change its annotation."
                )

    def _bind(self, name: str, size: Any, arg: str) -> None:
        bound, first = self._bound.setdefault(name, (size, arg))
        if bound != size:
            raise ValueError(
                f"{name} is {bound} in {first}, but {size} in {arg}. Pass arguments that agree, or "
                "use different names in the annotations."
            )

    def _bind_group(self, token: str, name: str, sizes: tuple[int, ...], arg: str) -> None:
        bound, _ = self._bound.get(name, (sizes, arg))
        if token == "..." and bound != sizes:
            self._bound[name] = None, arg
            return
        if "#" in token and bound != sizes:
            try:
                self._bound[name] = np.broadcast_shapes(bound, sizes), arg
                return
            except ValueError:
                pass  # they do not agree
        self._bind(name, sizes, arg)

    def _size(self, token: str) -> int:
        """Return the value of a name or an expression."""
        sizes = {name: size for name, (size, _) in self._bound.items() if name[0] != "*"}
        names = self._ones | sizes
        if token in names:
            return names[token]
        values = ", ".join(f"{name}={size}" for name, size in names.items()) or "no names"
        try:
            tree = ast.parse(token, mode="eval")
        except SyntaxError:
            tree = None
        if tree is None or not all(isinstance(node, _ARITHMETIC) for node in ast.walk(tree)):
            raise ValueError(
                f"{token!r} is not a dimension. Write a name, an integer, or arithmetic over them."
            )
        try:
            # No builtins: in an interactive session `_` is one of them.
            value = eval(compile(tree, "<dimension>", "eval"), {"__builtins__": {}}, names)
        except NameError as error:
            raise ValueError(
                f"no argument determines {error.name!r}. Annotate the argument that does, or pass "
                "result=."
            ) from None
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ValueError(
                f"cannot compute {token!r} with {values}: {type(error).__name__}: {error}. "
                "Write an expression that is valid for every argument, or pass result=."
            ) from None
        if type(value) is not int or value < 0:
            raise ValueError(
                f"{token!r} is {value} with {values}, which is not a valid dimension. "
                "Write a non-negative integer expression (n//2, not n/2), or pass result=."
            )
        return value

    def _dtype(self, hint: Any) -> Any:
        """Return the only dtype that an annotation allows, or the promoted dtype of arguments."""
        names, family = _family(hint)
        if names and not family:
            raise ValueError(
                f"{_kind(hint)} is not an array of numbers. Annotate the key's data, "
                "UInt32[Array, '2'], or pass result=."
            )
        if len(family) == 1:
            return family[0]
        dtypes = [dtype for dtype in self._dtypes if dtype in family or not family]
        if dtypes:
            return jnp.result_type(*dtypes)
        for default in (float, int, complex, bool):
            dtype = jax.dtypes.canonicalize_dtype(default)
            if dtype in family:
                return dtype
        raise ValueError(
            f"no argument is {_kind(hint)}, so its width is unknown. Name the width, as in Float32."
        )


def _tokens(dims: str) -> list[tuple[str, str, bool]]:
    """Split ``"batch=4 *n #m+1"`` into tokens, without the documentary ``batch=``.

    With each: the token without the modifiers ``#``, ``?`` and ``*``, and whether it is a group of
    any number of dimensions.
    """
    tokens = [token.partition("=")[2] or token for token in dims.split()]
    return [
        (token, token.lstrip("#?*"), token == "..." or token.lstrip("#?").startswith("*"))
        for token in tokens
    ]


def _family(hint: Any) -> tuple[tuple[str, ...], list[np.dtype]]:
    """Return the names of the dtypes that an annotation allows, and those that are of numbers.

    Without names, it allows any dtype.
    """
    names = tuple(hint.dtypes) if isinstance(hint.dtypes, tuple | list) else ()
    family = []
    for name in names:
        try:
            family.append(jnp.dtype(name))
        except TypeError:  # not in this version of numpy or ml_dtypes; a PRNG key
            continue
    return names, family


def _kind(hint: Any) -> str:
    return _text(hint).partition("[")[0]


def _text(hint: Any) -> str:
    text = str(hint).removeprefix("<class '").removesuffix("'>")
    for prefix in ("jaxtyping.", "jax.jaxlib._jax.", "jaxlib._jax."):
        text = text.replace(prefix, "")
    return text
