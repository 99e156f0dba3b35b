"""Number functions and code objects, uniquely within the process."""

from __future__ import annotations

import itertools
import weakref
from typing import Any


def number(thing: Any) -> int:
    """Return the number of a function or code object; 0 if it has none."""
    try:
        return 0 if thing is None else _seen.setdefault(thing, next(_numbers))
    except TypeError:  # does not support weak references
        return 0


def code_number(function: Any) -> int:
    """Return a number for the code of a function and of all functions that it wraps.

    So ``vmap(f)`` and ``vmap(grad(f))`` differ.
    """
    codes = []
    while hasattr(function, "__code__") and len(codes) < _MOST:
        codes.append(number(function.__code__))
        function = getattr(function, "__wrapped__", None)
    return _wrapped.setdefault(tuple(codes), next(_numbers)) if codes else 0


_MOST = 100  # nested wrappers; the limit stops a function that claims to wrap itself
_numbers = itertools.count(1)
_seen: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_wrapped: dict[tuple[int, ...], int] = {}  # codes, outermost first
