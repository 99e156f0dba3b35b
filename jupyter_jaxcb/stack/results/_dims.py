"""The dimensions of jaxtyping annotations: arguments bind them, results look them up.

The grammar is jaxtyping's: names; ``*name`` and ``...`` for any number of dimensions; ``_`` and
``_name`` for unchecked dimensions; ``#`` for dimensions that may be 1; numbers; expressions such as
``n+1``.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np


class Dims:
    """The sizes that the names of dimensions have in one call."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, str]] = {}  # size, and the argument that bound it
        self._several: dict[str, tuple[tuple[int, ...], str]] = {}
        self._ambiguous: set[str] = set()  # groups with several shapes
        self._ones: set[str] = set()  # names marked with # whose dimension was 1

    def bind(self, dims: str, shape: tuple[int, ...], arg: str) -> None:
        """Bind the names in `dims`, the annotation of an argument, to its shape.

        Args:
            dims: the dimensions of the annotation, ``"n m+1"``.
            shape: the shape of the argument.
            arg: the name of the argument, for messages.

        Raises:
            ValueError: if the shape does not match `dims`, or contradicts an earlier argument.
        """
        tokens = _tokens(dims)
        variadic = [place for place, token in enumerate(tokens) if _is_variadic(token)]
        if len(variadic) > 1:
            raise ValueError(
                f"cannot match {dims!r} of {arg}: it has two groups of any number of dimensions. "
                "Use only one."
            )
        fixed = len(tokens) - len(variadic)
        if len(shape) != fixed and not (variadic and len(shape) > fixed):
            least = "at least " if variadic else ""
            raise ValueError(
                f"{arg} has shape {shape}, expected {least}{fixed} dimensions for {dims!r}. "
                f"Reshape {arg}, or change its annotation."
            )
        sizes = list(shape)
        if variadic:
            (place,) = variadic
            end = place + len(shape) - fixed
            self._bind_several(tokens.pop(place), shape[place:end], arg)
            del sizes[place:end]
        later = []
        for token, size in zip(tokens, sizes, strict=True):
            if not self._bind_one(token, size, arg):
                later.append((token, size))
        for token, size in later:
            self._check(token, size, arg)

    def shape(self, dims: str) -> tuple[int, ...]:
        """Return the shape of a result with the annotation `dims`.

        Raises:
            ValueError: if no argument binds one of its names.
        """
        shape: list[int] = []
        for token in _tokens(dims):
            if _is_variadic(token):
                name = _name(token)
                if name not in self._several:
                    raise ValueError(
                        f"no argument determines {token!r}. Annotate the argument that does, or "
                        "pass result=."
                    )
                if name in self._ambiguous:
                    raise ValueError(
                        f"{token!r} is ambiguous: it has different dimensions in different "
                        "arguments. Name the group, as in *n, or pass result=."
                    )
                shape += self._several[name][0]
            else:
                shape.append(self._value(_name(token)))
        return tuple(shape)

    def _bind_several(self, token: str, sizes: tuple[int, ...], arg: str) -> None:
        name = _name(token)
        if name.startswith("_"):
            return
        known, first = self._several.setdefault(name, (sizes, arg))
        if known == sizes:
            return
        if name == "...":
            self._ambiguous.add(name)
            return
        try:
            if "#" not in token:
                raise ValueError
            self._several[name] = np.broadcast_shapes(known, sizes), arg
        except ValueError:
            raise ValueError(
                f"*{name} is {known} in {first}, but {sizes} in {arg}. Pass arguments that agree, "
                "or use different names in the annotations."
            ) from None

    def _bind_one(self, token: str, size: int, arg: str) -> bool:
        """Bind one dimension; return False if it must be checked once all names are known."""
        name = _name(token)
        if name.startswith("_"):
            return True
        if "#" in token and size == 1:
            self._ones.add(name)
            return True
        if not name.isidentifier():
            return False
        known = self._sizes.setdefault(name, (size, arg))
        if known[0] != size:
            raise ValueError(
                f"{name} is {known[0]} in {known[1]}, but {size} in {arg}. Pass arguments that "
                "agree, or use different names in the annotations."
            )
        return True

    def _check(self, token: str, size: int, arg: str) -> None:
        wanted = self._value(_name(token))
        if wanted != size:
            value = "" if token.isdigit() else f" = {wanted}"
            raise ValueError(
                f"{arg} has a dimension of size {size}, expected {token}{value}. Reshape {arg}, or "
                "change its annotation."
            )

    def _value(self, token: str) -> int:
        if token.isidentifier() and token in self._sizes:
            return self._sizes[token][0]
        names = dict.fromkeys(self._ones, 1)
        names |= {name: size for name, (size, _) in self._sizes.items()}
        expression = _arithmetic(token)
        try:
            # No builtins: in an interactive session `_` is one of them.
            nothing = {"__builtins__": {}}
            value = eval(compile(expression, "<dimension>", "eval"), nothing, names)
        except NameError as error:
            raise ValueError(
                f"no argument determines {error.name!r}. Annotate the argument that does, or pass "
                "result=."
            ) from None
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ValueError(
                f"cannot compute {token!r} with {_values(names)}: {type(error).__name__}: {error}. "
                "Write an expression that is valid for every argument, or pass result=."
            ) from None
        if type(value) is not int or value < 0:
            raise ValueError(
                f"{token!r} is {value} with {_values(names)}, which is not a valid dimension. "
                "Write a non-negative integer expression (n//2, not n/2), or pass result=."
            )
        return value


def _values(names: dict[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in names.items()) or "no names"


def _arithmetic(token: str) -> ast.Expression:
    """Parse the expression of a dimension: arithmetic over names and integers, nothing else."""
    try:
        tree = ast.parse(token, mode="eval")
    except SyntaxError:
        tree = None
    allowed: Any = (
        ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Constant,
        ast.Load,
    )  # fmt: skip
    if tree is None or not all(isinstance(node, allowed) for node in ast.walk(tree)):
        raise ValueError(
            f"{token!r} is not a dimension. Write a name, an integer, or arithmetic over them."
        )
    return tree


def _tokens(dims: str) -> list[str]:
    """Split ``"batch=4 *n m+1"`` into tokens, without the documentary ``batch=``."""
    return [token.partition("=")[2] or token for token in dims.split()]


def _name(token: str) -> str:
    """Strip the modifiers ``#``, ``?`` and ``*`` from a token."""
    return token.lstrip("#?*")


def _is_variadic(token: str) -> bool:
    return token == "..." or token.lstrip("#?").startswith("*")
