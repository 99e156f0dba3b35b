"""Which function, and which code, something is: numbers, counted over the process."""

from __future__ import annotations

import itertools
import weakref
from typing import Any


def number(thing: Any) -> int:
    """Which function or code this is; 0 if that is not known."""
    try:
        return 0 if thing is None else _seen.setdefault(thing, next(_numbers))
    except TypeError:  # not to be held weakly
        return 0


def code_number(function: Any) -> int:
    """Which code a function runs, with what it wraps: ``vmap(f)`` and ``vmap(grad(f))`` differ."""
    codes = []
    while hasattr(function, "__code__") and len(codes) < _MOST:
        codes.append(number(function.__code__))
        function = getattr(function, "__wrapped__", None)
    return _wrapped.setdefault(tuple(codes), next(_numbers)) if codes else 0


_MOST = 100  # functions around each other; one may say that it wraps itself
_numbers = itertools.count(1)
_seen: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_wrapped: dict[tuple[int, ...], int] = {}  # codes, outermost first
