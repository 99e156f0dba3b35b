"""Number functions and code objects, uniquely within the process."""

from __future__ import annotations

import itertools
import weakref
from types import CodeType, FunctionType
from typing import Any

from ..trace import is_machinery


def number(thing: Any) -> int:
    """Return the number of a function or code object; 0 if it has none."""
    try:
        return 0 if thing is None else _seen.setdefault(thing, next(_numbers))
    except TypeError:  # does not support weak references
        return 0


def code_number(function: Any) -> int:
    """Number the code that a function runs, with that of the functions it wraps or closes over.

    ``vmap(f)`` and ``grad(f)`` differ in a function that JAX's wrapper around them closes over.
    """
    codes = tuple(number(code) for code in _codes(function))
    return _wrapped.setdefault(codes, next(_numbers)) if codes else 0


def is_of_jax(function: Any) -> bool:
    """Return whether all that code is JAX's, as that of ``jnp.sin``."""
    codes = _codes(function)
    return bool(codes) and all(is_machinery(code.co_filename) for code in codes)


def _codes(function: Any) -> list[CodeType]:
    codes, waiting, known = [], [function], set()
    while waiting and len(codes) < _MOST:
        one = waiting.pop()
        if type(one) is not FunctionType or id(one) in known:
            continue
        known.add(id(one))
        codes.append(one.__code__)
        waiting.append(getattr(one, "__wrapped__", None))
        for cell in one.__closure__ or ():
            try:
                waiting.append(cell.cell_contents)
            except ValueError:  # not assigned yet
                pass
    return codes


_MOST = 100  # functions that are looked at
_numbers = itertools.count(1)
_seen: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_wrapped: dict[tuple[int, ...], int] = {}  # codes, outermost first
