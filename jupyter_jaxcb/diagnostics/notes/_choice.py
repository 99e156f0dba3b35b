"""Which variables are watched: ``"loss, step.*, model.py:40-60"``."""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp

_VARIABLE = re.compile(r"(?:(\w+)\.)?(\w+)(?:\(\))?|(\w+)\.\*")
_LINES = re.compile(r"(?P<file>.+\.\w+):(?P<first>\d+)(?:-(?P<last>\d+))?")


def chosen(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return what the user writes as a tuple.

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
    if not names:
        return jnp.inexact
    found = None
    for text in names:
        if lines := _LINES.fullmatch(text):
            is_there = f"/{file}".replace("\\", "/").endswith(f"/{lines['file']}")
            last = int(lines["last"] or lines["first"])
            if is_there and int(lines["first"]) <= line <= last:
                found = jnp.inexact
        elif text == f"{function}.*":
            found = jnp.inexact
        elif text in (name, f"{function}.{name}"):
            return jnp.number
    return found
