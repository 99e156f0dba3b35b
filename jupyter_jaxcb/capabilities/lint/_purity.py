"""Warn about evident side effects in the code of a pure host function.

Only its own code is read, when it is registered: whether it prints, opens files, draws random
numbers, reads the clock, or writes to something. Side effects in functions that it calls are found
by `jupyter_jaxcb.check`, which runs it.
"""

from __future__ import annotations

import builtins
import datetime
import io
import logging
import os
import random
import secrets
import sys
import time
import types
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...stack.call import HostCallback, marks
from ...stack.trace import is_cell, is_user_code
from ._references import UNKNOWN, instructions, own_loads, python_function
from ._writes import Write, unseeded, writes


class ImpureFunctionWarning(UserWarning):
    """The code of a pure host function has side effects.

    The message names the line, and the flavor to register it as. To silence the warning where the
    side effect is intended:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.ImpureFunctionWarning)
    """


class Impurity(NamedTuple):
    """A side effect in the code of a host function.

    Attributes:
        does: the side effect, ``prints`` or ``draws random numbers``; a key of `ADVICE`.
        what: the name in the code, ``np.random.rand``.
        file: the source file, or the name of the cell.
        line: the line in it, from 1.
    """

    does: str
    what: str
    file: str
    line: int

    @property
    def where(self) -> str:
        """``line 3`` of a cell, ``model.py:12`` of a file."""
        place = "line " if is_cell(self.file) else f"{os.path.basename(self.file)}:"
        return f"{place}{self.line}"

    @property
    def advice(self) -> str:
        """What to do about the side effect."""
        return ADVICE[self.does]


ADVICE = {
    "prints": "Print in a debug callback (jaxcb.debug), or register it as io",
    "opens a file": "Register it as io",
    "draws random numbers": "Register it as io, or create the generator from an argument: "
    "np.random.default_rng(int(seed))",
    "reads the clock": "Register it as io",
    "modifies outer state": "Register it as io",
    "writes into an argument": "Copy it first with np.array(x), or register it as buffer and write "
    "into its output",
}
_ADVICE_OF_JAX = {  # for callbacks of JAX's own API
    **dict.fromkeys(ADVICE, "Use io_callback"),
    "prints": "Print in jax.debug.callback, or use io_callback",
    "draws random numbers": ADVICE["draws random numbers"].replace(
        "Register it as io", "Use io_callback"
    ),
    "writes into an argument": "Copy it first with np.array(x)",
}
_NUMPY_FILES = ("save", "savetxt", "savez", "savez_compressed")
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_DRAWN = (np.random.Generator, np.random.RandomState, random.Random)
_warned: weakref.WeakSet[types.CodeType] = weakref.WeakSet()
_impure: weakref.WeakKeyDictionary[types.CodeType, bool] = weakref.WeakKeyDictionary()


def _by_identity() -> dict[int, str]:
    """Return the side effect of each known function, by its identity."""
    clocks = [getattr(time, name + ending) for name in _CLOCKS for ending in ("", "_ns")]
    known = {
        "prints": [builtins.print],
        "opens a file": [builtins.open, io.open, os.open, *(getattr(np, n) for n in _NUMPY_FILES)],
        "draws random numbers": [os.urandom, uuid.uuid1, uuid.uuid4]
        + [getattr(secrets, name) for name in secrets.__all__],
        "reads the clock": clocks,
    }
    return {id(thing): does for does, things in known.items() for thing in things}


_KNOWN = _by_identity()


def impurities(function: Callable[..., Any], leading: int = 0) -> list[Impurity]:
    """Return the side effects in the code of `function`, the first of each kind.

    Args:
        function: the host function.
        leading: the number of leading parameters that it may write into.
    """
    python, _ = python_function(function)
    if python is None:
        return []
    found: dict[str, Impurity] = {}
    for one in sorted(_all(python, function, leading), key=lambda one: one.line):
        found.setdefault(one.does, one)
    return list(found.values())


def modified_state(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    """Yield what `function` modifies outside of itself, and the lines."""
    python, _ = python_function(function)
    for one in () if python is None else _all(python, function, 0):
        if one.does == "modifies outer state":
            yield one.what, one.line


def _all(
    python: types.FunctionType, function: Callable[..., Any], leading: int
) -> Iterator[Impurity]:
    file, values = python.__code__.co_filename, {}
    for load in own_loads(function):
        values[load.name] = load.value
        does = _does(load.value)
        if does:
            yield Impurity(does, load.name, file, load.line)
    for name, line in _stored(python.__code__, frozenset(python.__code__.co_freevars)):
        yield Impurity("modifies outer state", name, file, line)
    _, receiver = python_function(function)
    for write in writes(python, leading, is_method=receiver is not UNKNOWN):
        yield Impurity(_WRITES[write.kind], write.what, file, write.line)
    makers = (np.random.default_rng, np.random.RandomState, random.Random)
    named = {name for name, value in values.items() if any(value is one for one in makers)}
    for what, line in unseeded(python, named):
        yield Impurity("draws random numbers", what, file, line)


_WRITES = {Write.ARGUMENT: "writes into an argument", Write.OUTSIDE: "modifies outer state"}


def _does(value: Any) -> str:
    """Return the side effect of calling `value` or its methods; empty if there is none."""
    known = _KNOWN.get(id(value), "")
    if known or value is sys.stdout or value is sys.stderr:
        return known or "prints"
    owner = getattr(value, "__self__", None) if isinstance(value, _BOUND) else value
    if isinstance(owner, _DRAWN):
        return "draws random numbers"
    if isinstance(value, logging.Logger) or getattr(value, "__module__", None) == "logging":
        return "prints" if _logs(value) else ""
    if isinstance(owner, type) and issubclass(owner, datetime.date) and owner is not value:
        return "reads the clock" if value.__name__ in ("now", "utcnow", "today") else ""
    return ""


_BOUND = (types.BuiltinFunctionType, types.MethodType)


def _logs(value: Any) -> bool:
    named = ("debug", "info", "warning", "error", "critical", "exception", "log")
    return isinstance(value, logging.Logger) or getattr(value, "__name__", "") in named


def _stored(code: types.CodeType, free: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Yield the global and nonlocal names that the code assigns to, with their lines."""
    for instruction in instructions(code):
        opname, name = instruction.opname, instruction.argval
        if opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
            opname in ("STORE_DEREF", "DELETE_DEREF") and name in free
        ):
            line = instruction.positions.lineno if instruction.positions else None
            yield name, line or code.co_firstlineno
        elif isinstance(name, types.CodeType):
            yield from _stored(name, free & frozenset(name.co_freevars))


def is_impure(function: Callable[..., Any]) -> bool:
    """Return whether the code of a pure host function has side effects, see `impurities`."""
    python, _ = python_function(function)
    if python is None:
        return False
    known = _impure.get(python.__code__)
    if known is None:
        known = _impure[python.__code__] = bool(impurities(function))
    return known


def _is_impure(callback: HostCallback) -> bool:
    return callback.options.flavor == "pure" and is_impure(callback.host.current)


marks("impure", _is_impure, eager=False)


def users_function(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the user's code that the function of a callback runs; None if it is a library's.

    A function of a library may call the user's, which it has in a closure, as that of equinox's
    ``filter_pure_callback`` does.
    """
    for value in (function, *(load.value for load in own_loads(function))):
        python, _ = python_function(value)
        if python is not None and is_user_code(python.__code__.co_filename):
            return value
    return None


def warn_of_impurity(function: Callable[..., Any], name: str, of_jax: str = "") -> None:
    """Warn about side effects in the code of a pure host function, once for each function.

    Args:
        function: the host function.
        name: its name.
        of_jax: ``"jax "`` for a callback of JAX's own API.
    """
    python, _ = python_function(function)
    if python is None or python.__code__ in _warned:
        return
    _warned.add(python.__code__)
    for one in impurities(function):
        advice = _ADVICE_OF_JAX[one.does] if of_jax else one.advice
        warnings.warn_explicit(
            f"the {of_jax}pure callback {name} {one.does} ({one.what}, {one.where}), but JAX may "
            f"remove, repeat or deduplicate its calls. {advice}.",
            ImpureFunctionWarning,
            one.file,
            one.line,
        )
