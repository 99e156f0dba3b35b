"""Warn about evident side effects in the code of a pure host function.

Only its own code is read, and that of what its decorators wrap: whether it prints, opens files,
draws random numbers, reads the clock, or writes to something. Side effects in functions that it
calls are found by `jupyter_jaxcb.check`, which runs it.
"""

from __future__ import annotations

import builtins
import contextlib
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

from ...recording import on_one_line
from ...stack.call import HostCallback, marks
from ...stack.trace import is_cell, is_user_code
from ._changes import Change, How, Owner, Source, files_of_print, sources
from ._references import as_far_as_readable, own_code, python_function


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
        return on_one_line(f"{place}{self.line}")

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
_ADVICE_OF_CALLS = {  # of `pure_callback`, JAX's or ours
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
    found: dict[str, Impurity] = {}
    for source in as_far_as_readable(sources(function, leading)):
        for one in sorted(as_far_as_readable(_of(source)), key=lambda one: one.line):
            found.setdefault(one.does, one)
    return list(found.values())


def is_state(change: Change) -> bool:
    """Return whether a later call may see a change, and it is not that of a cache."""
    if change.owner is Owner.RECEIVER:  # which may keep results for those who ask it later
        return change.how in (How.COUNTS, How.GROWS)
    return change.owner is Owner.OUTSIDE and change.how not in (How.ITEM, How.FIXED_ITEM)


def _of(source: Source) -> Iterator[Impurity]:
    makers = set()
    elsewhere = {source.before + one.lineno for one in source.nodes if files_of_print(one)}
    redirected = any(load.value is one for load in source.loads for one in _REDIRECT)
    for load in source.loads:
        does = _does(load.value)
        quiet = redirected or load.line in elsewhere or _may_name_file(source, load.code)
        if does and not (load.value is builtins.print and quiet):
            yield Impurity(does, load.name, source.file, load.line)
        if any(load.value is one for one in _MAKERS):
            makers.add(load.name)
    for one in source.changes():
        if one.owner is Owner.ARGUMENT:
            yield Impurity("writes into an argument", *one[:3])
        elif is_state(one) and not any(one.values[0] is file for file in (sys.stdout, sys.stderr)):
            yield Impurity("modifies outer state", *one[:3])
    for what, line in source.calls_without_arguments(makers):
        yield Impurity("draws random numbers", what, source.file, line)


def _may_name_file(source: Source, code: types.CodeType) -> bool:
    """Return whether code of unknown source may print to a file of its own."""
    names = (name for one in code.co_consts if type(one) is tuple for name in one)
    return not source.nodes and "file" in names


_REDIRECT = (contextlib.redirect_stdout, contextlib.redirect_stderr)
_MAKERS = (np.random.default_rng, np.random.RandomState, random.Random)


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


def is_impure(function: Callable[..., Any]) -> bool:
    """Return whether the code of a pure host function has side effects, see `impurities`."""
    code = own_code(function)
    if code is None:
        return False
    known = _impure.get(code)
    if known is None:
        known = _impure[code] = bool(impurities(function))
    return known


def _is_impure(callback: HostCallback) -> bool:
    return callback.options.flavor == "pure" and is_impure(callback.host.current)


marks("impure", _is_impure, eager=False)


def users_function(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the user's code that the function of a callback runs; None if it is a library's.

    A function of a library may call the user's, which it has in a closure, as that of equinox's
    ``filter_pure_callback`` does.
    """
    loads = (load.value for source in sources(function) for load in source.loads)
    for value in (function, *loads):
        python, _ = python_function(value)
        if python is not None and is_user_code(python.__code__.co_filename):
            return value
    return None


def warn_of_impurity(
    function: Callable[..., Any], name: str, flavor: str = "pure", *, registered: bool = False
) -> None:
    """Warn about side effects in the code of a pure host function, once for each function.

    Args:
        function: the host function.
        name: its name.
        flavor: ``"pure"``, or ``"jax pure"`` for a callback of JAX's own API.
        registered: whether the decorator has registered it.
    """
    code = own_code(function)
    if code is None or code in _warned:
        return
    _warned.add(code)
    for one in impurities(function):
        advice = one.advice if registered else _ADVICE_OF_CALLS[one.does]
        warnings.warn_explicit(
            f"the {flavor} callback {name} {one.does} ({one.what}, {one.where}), but JAX may "
            f"remove, repeat or deduplicate its calls. {advice}.",
            ImpureFunctionWarning,
            one.file,
            one.line,
        )
