"""What a block watches: the variables, ``"loss, step.*, model.py:40-60"``, and what is bad."""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp

_VARIABLE = re.compile(r"(?:(\w+)\.)?(\w+)(?:\(\))?|(\w+)\.\*")
_LINES = re.compile(r"(?P<file>.+\.\w+):(?P<first>\d+)(?:-(?P<last>\d+))?")
_BAD = {
    "nan": jnp.isnan,
    "inf": jnp.isinf,
    "both": lambda x: jnp.logical_not(jnp.isfinite(x)),
}


class Condition(NamedTuple):
    """Which values are bad.

    Attributes:
        text: "nan", "inf", "both", or an expression of ``x``, such as "abs(x) > 1e6".
        test: takes an array and returns an array of booleans.
        is_finite: whether no finite value is bad.
    """

    text: str
    test: Callable[[Any], Any]
    is_finite: bool


class Options(NamedTuple):
    """What a block watches; equal options share JAX's caches.

    Attributes:
        rows: whether the numbers of every value are sent.
        bad: which values are bad.
        names: the variables that are watched; empty for all.
        every: the numbers of every `every`-th step of the innermost loop are sent.
        reductions: names and functions of the user, whose number is sent with the others.
        stop: whether the program ends at the first bad value.
    """

    rows: bool
    bad: Condition
    names: tuple[str, ...] = ()
    every: int = 1
    reductions: tuple[tuple[str, Callable[[Any], Any]], ...] = ()
    stop: bool = False


@functools.lru_cache(maxsize=256)  # equal conditions share JAX's caches
def condition(text: str) -> Condition:
    """Return the condition that `text` means.

    Raises:
        ValueError: it is neither one of the three words nor an expression of ``x``.
    """
    if text in _BAD:
        return Condition(text, _BAD[text], True)
    names = {**vars(jnp), "jnp": jnp}
    try:
        code = compile(text, "<condition>", "eval")
        test = functools.partial(eval, code)  # the user's own expression, of the user's own cell
        example = jnp.asarray(test({**names, "x": jnp.ones(2)}))
        if example.shape != (2,) or example.dtype != bool:
            raise TypeError(
                f"it returned {example.dtype}{list(example.shape)} for an array of 2 values"
            )
    except Exception as error:
        raise ValueError(
            f"the condition {text!r} is not an expression of x that returns one boolean for each "
            f"value: {error}. Pass 'nan', 'inf', 'both', or an expression such as 'abs(x) > 1e6'."
        ) from error
    return Condition(text, lambda x: test({**names, "x": x}), False)


def chosen(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return what the user writes to choose variables as a tuple.

    Raises:
        ValueError: a part of it chooses neither variables nor lines.
    """
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    names = tuple(names) if isinstance(names, Iterable) else (names,)
    for name in names:
        if not isinstance(name, str) or not _is_choice(name):
            raise ValueError(
                f"{name!r} does not choose variables. Write names of variables as in 'loss, "
                "grads', 'step.loss' or 'step.*' for those of the function step, or lines of a "
                "file as in 'model.py:40-60'."
            )
    return names


def _is_choice(text: str) -> bool:
    if lines := _LINES.fullmatch(text):
        return int(lines["first"]) <= int(lines["last"] or lines["first"])
    names = _VARIABLE.fullmatch(text)
    return names is not None and all(
        name.isidentifier() and not keyword.iskeyword(name) for name in names.groups() if name
    )


@functools.lru_cache(maxsize=16_384)
def numbers_watched(names: tuple[str, ...], name: str, function: str, file: str, line: int) -> Any:
    """Return the kind of numbers that are watched in a variable; None if it is not watched.

    Integers are only watched in variables that are named: `jnp.number` instead of `jnp.inexact`.
    """
    kind = None if names else jnp.inexact
    for text in names:
        if text in (name, f"{function}.{name}"):
            return jnp.number
        if lines := _LINES.fullmatch(text):
            is_file = f"/{file}".replace("\\", "/").endswith(f"/{lines['file']}")
            last = int(lines["last"] or lines["first"])
            if is_file and int(lines["first"]) <= line <= last:
                kind = jnp.inexact
        elif text == f"{function}.*":
            kind = jnp.inexact
    return kind
