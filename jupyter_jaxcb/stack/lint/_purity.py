"""What the code of a pure host function plainly does that a pure function does not.

Its own source alone is looked at, when it is registered: what it prints, opens, draws, reads off
the clock, or writes. What functions do that it calls is found by `check`, which runs it.
"""

from __future__ import annotations

import builtins
import datetime
import dis
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

from ..core import is_cell
from ._references import UNKNOWN, own_loads, python_function
from ._writes import Write, unseeded, writes


class ImpureFunctionWarning(UserWarning):
    """A pure host function does what a pure function does not.

    The message names the line, and the flavor to register it as. To silence it where it is meant:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.ImpureFunctionWarning)
    """


class Impurity(NamedTuple):
    """What a host function does, by its source.

    Attributes:
        does: ``prints``, ``draws random numbers``; a key of `ADVICE`.
        what: the name in the code, ``np.random.rand``.
        file, line: of the code.
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
        """What to do about it."""
        return ADVICE[self.does]


ADVICE = {
    "prints": "Print in a debug callback (jaxcb.debug), or register it as io",
    "opens a file": "Register it as io",
    "draws random numbers": "Register it as io, or make the generator of an argument: "
    "np.random.default_rng(int(seed))",
    "reads the clock": "Register it as io",
    "writes a name outside of it": "Register it as io",
    "writes into an argument": "Copy it first, np.array(x), or register it as buffer and write "
    "into its result",
}
_NUMPY_FILES = ("save", "savetxt", "savez", "savez_compressed")
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_DRAWN = (np.random.Generator, np.random.RandomState, random.Random)
_warned: weakref.WeakSet[types.CodeType] = weakref.WeakSet()


def _by_identity() -> dict[int, str]:
    """What the things do that are known by themselves."""
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
    """What `function` plainly does, the first of each kind.

    Args:
        function: the host function.
        leading: parameters that it is to write into.
    """
    python, _ = python_function(function)
    if python is None:
        return []
    found: dict[str, Impurity] = {}
    for one in sorted(_all(python, function, leading), key=lambda one: one.line):
        found.setdefault(one.does, one)
    return list(found.values())


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
        yield Impurity("writes a name outside of it", name, file, line)
    _, receiver = python_function(function)
    for write in writes(python, leading, is_method=receiver is not UNKNOWN):
        yield Impurity(_WRITES[write.kind], write.what, file, write.line)
    makers = (np.random.default_rng, np.random.RandomState, random.Random)
    named = {name for name, value in values.items() if any(value is one for one in makers)}
    for what, line in unseeded(python, named):
        yield Impurity("draws random numbers", what, file, line)


_WRITES = {
    Write.ARGUMENT: "writes into an argument",
    Write.OUTSIDE: "writes a name outside of it",
}


def _does(value: Any) -> str:
    """What calling `value` does, or the methods of it; empty for nothing of these."""
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
    """Names outside of the function that its code assigns to, with the lines."""
    for instruction in dis.get_instructions(code):
        opname, name = instruction.opname, instruction.argval
        if opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
            opname in ("STORE_DEREF", "DELETE_DEREF") and name in free
        ):
            line = instruction.positions.lineno if instruction.positions else None
            yield name, line or code.co_firstlineno
        elif isinstance(name, types.CodeType):
            yield from _stored(name, free & frozenset(name.co_freevars))


def warn_of_impurity(function: Callable[..., Any], name: str) -> None:
    """Warns, once for each function, of what its code plainly does."""
    python, _ = python_function(function)
    if python is None or python.__code__ in _warned:
        return
    _warned.add(python.__code__)
    for one in impurities(function):
        warnings.warn_explicit(
            f"the pure callback {name} {one.does} ({one.what}, {one.where}), but calls of a pure "
            f"function may be dropped, repeated or made once for several. {one.advice}.",
            ImpureFunctionWarning,
            one.file,
            one.line,
        )
