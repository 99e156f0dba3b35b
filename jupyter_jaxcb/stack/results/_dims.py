"""The dimensions of jaxtyping annotations: bound by arguments, looked up for a result.

The grammar is jaxtyping's: names, ``*names`` for any number of dimensions, ``...``, ``_`` and
``_name`` for what is not checked, ``#`` for what may be 1, numbers, expressions such as ``n+1``.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np


class Dims:
    """What the names of dimensions stand for in one call."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, str]] = {}  # and which argument said so
        self._several: dict[str, tuple[tuple[int, ...], str]] = {}
        self._ambiguous: set[str] = set()  # groups that stand for several shapes
        self._ones: set[str] = set()  # said to be 1 by an argument in which they may be 1

    def bind(self, dims: str, shape: tuple[int, ...], who: str) -> None:
        """Takes the shape of an argument whose annotation says `dims`.

        Raises:
            ValueError: it does not fit, or says something else than an earlier argument.
        """
        tokens = _tokens(dims)
        variadic = [place for place, token in enumerate(tokens) if _is_variadic(token)]
        if len(variadic) > 1:
            raise ValueError(
                f"cannot bind {dims!r} of {who}: it has two groups of any number of dimensions. "
                "Leave one."
            )
        fixed = len(tokens) - len(variadic)
        if len(shape) != fixed and not (variadic and len(shape) > fixed):
            least = "at least " if variadic else ""
            raise ValueError(
                f"{who} has shape {shape}, which is not {dims!r}: {len(shape)} dimensions where "
                f"{least}{fixed} are annotated. Give {who} that many, or "
                "annotate what it has."
            )
        sizes = list(shape)
        if variadic:
            (place,) = variadic
            end = place + len(shape) - fixed
            self._bind_several(tokens.pop(place), shape[place:end], who)
            del sizes[place:end]
        later = []
        for token, size in zip(tokens, sizes, strict=True):
            if not self._bind_one(token, size, who):
                later.append((token, size))
        for token, size in later:
            self._check(token, size, who)

    def shape(self, dims: str) -> tuple[int, ...]:
        """The shape that a result's annotation says.

        Raises:
            ValueError: a name in it is not bound by any argument.
        """
        shape: list[int] = []
        for token in _tokens(dims):
            if _is_variadic(token):
                name = _name(token)
                if name not in self._several:
                    raise ValueError(
                        f"no argument says which dimensions {token!r} stands for. Annotate the one "
                        "that does, or give result=."
                    )
                if name in self._ambiguous:
                    raise ValueError(
                        f"{token!r} stands for other dimensions in every argument. Name those of "
                        "the result, as *n does, or give result=."
                    )
                shape += self._several[name][0]
            else:
                shape.append(self._value(_name(token)))
        return tuple(shape)

    def _bind_several(self, token: str, sizes: tuple[int, ...], who: str) -> None:
        name = _name(token)
        if name.startswith("_"):
            return
        known, first = self._several.setdefault(name, (sizes, who))
        if known == sizes:
            return
        if name == "...":
            self._ambiguous.add(name)
            return
        try:
            if "#" not in token:
                raise ValueError
            self._several[name] = np.broadcast_shapes(known, sizes), who
        except ValueError:
            raise ValueError(
                f"*{name} is {known} by {first}, and {sizes} by {who}. Give arguments of equal "
                "shapes there, or annotate them by other names."
            ) from None

    def _bind_one(self, token: str, size: int, who: str) -> bool:
        """Takes one dimension; False if it is to be checked once all names are known."""
        name = _name(token)
        if name.startswith("_"):
            return True
        if "#" in token and size == 1:
            self._ones.add(name)
            return True
        if not name.isidentifier():
            return False
        known = self._sizes.setdefault(name, (size, who))
        if known[0] != size:
            raise ValueError(
                f"{name} is {known[0]} by {known[1]}, and {size} by {who}. Give arguments of equal "
                "sizes there, or annotate them by other names."
            )
        return True

    def _check(self, token: str, size: int, who: str) -> None:
        wanted = self._value(_name(token))
        if wanted != size:
            number = "annotated" if token.isdigit() else wanted
            raise ValueError(
                f"{who} has a dimension of {size} where {token} is {number}. Give {who} the "
                "annotated shape, or annotate what it has."
            )

    def _value(self, token: str) -> int:
        if token.isidentifier() and token in self._sizes:
            return self._sizes[token][0]
        names = dict.fromkeys(self._ones, 1)
        names |= {name: size for name, (size, _) in self._sizes.items()}
        try:
            # Without Python's builtins: `_` is one of them in an interactive session.
            nothing = {"__builtins__": {}}
            value = eval(compile(_arithmetic(token), "<dimension>", "eval"), nothing, names)
        except NameError as error:
            raise ValueError(
                f"no argument says how large {error.name!r} is. Annotate the one that does, or "
                "give result=."
            ) from None
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ValueError(
                f"{token!r} cannot be computed: {type(error).__name__}: {error}, with "
                f"{_values(names)}. Write what is a whole number for every argument, or give "
                "result=."
            ) from None
        if type(value) is not int or value < 0:
            raise ValueError(
                f"{token!r} is {value}, which is no size of a dimension, with {_values(names)}. "
                "Write what is a whole number and not negative (n//2, not n/2), or give result=."
            )
        return value


def _values(names: dict[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in names.items()) or "no names"


def _arithmetic(token: str) -> ast.Expression:
    """The expression of a dimension, if it is arithmetic of names and whole numbers."""
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
            f"{token!r} is no dimension. Write a name, a whole number, or arithmetic of them."
        )
    return tree


def _tokens(dims: str) -> list[str]:
    """``"batch=4 *n m+1"`` without the names that only document."""
    return [token.partition("=")[2] or token for token in dims.split()]


def _name(token: str) -> str:
    """Without what is said of it: may be 1, differs among leaves, stands for several."""
    return token.lstrip("#?*")


def _is_variadic(token: str) -> bool:
    return token == "..." or token.lstrip("#?").startswith("*")
