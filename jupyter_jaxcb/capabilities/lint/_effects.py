"""Warn about side effects of pure functions, and about state of functions that run in workers.

Only a function's own code is read, and that of what its decorators wrap. Side effects in functions
that it calls are found by `jupyter_jaxcb.check`, which runs it.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import logging
import operator
import os
import random
import secrets
import sys
import threading
import time
import types
import uuid
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...recording import Frame, where_now
from ...stack.call import name_of
from ...stack.trace import is_cell, is_user_code
from ._body import Reading
from ._functions import Called, called_by, closure_of, layers


class ImpureFunctionWarning(UserWarning):
    """The code of a pure host function has side effects.

    The message names the line, and the flavor to register it as. To silence the warning where the
    side effect is intended:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.ImpureFunctionWarning)
    """


class WorkerStateWarning(UserWarning):
    """An io function keeps state between calls, which run in other processes.

    Each process has its own copy of a global variable, and sees only what its own calls change;
    which calls these are may differ in each run. The message names the line. To silence the warning
    where that is intended:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.WorkerStateWarning)
    """


class Impurity(NamedTuple):
    """A side effect in the code of a host function."""

    does: str  # "prints" or "draws random numbers", a key of `_ADVICE`
    what: str  # as written: ``np.random.rand``
    file: str  # the source file, or the name of the cell
    line: int

    @property
    def place(self) -> Frame:
        """The line as a place."""
        return _place(self.file, self.line)

    @property
    def advice(self) -> str:
        """What to do about the side effect, for a registered function."""
        return _ADVICE[self.does]


_ADVICE = {
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
    **{
        does: text.replace("Register it as io", "Use io_callback") for does, text in _ADVICE.items()
    },
    "prints": "Print in jax.debug.callback, or use io_callback",
    "writes into an argument": "Copy it first with np.array(x)",
}
_FILES = (open, os.open, np.save, np.savetxt, np.savez, np.savez_compressed)
_RANDOM = (os.urandom, uuid.uuid1, uuid.uuid4, *(getattr(secrets, x) for x in secrets.__all__))
_CLOCKS = [f"{name}{unit}" for unit in ("", "_ns")
           for name in "time monotonic perf_counter process_time thread_time".split()]  # fmt: skip
_DOES = {id(print): "prints"} | {  # by identity, as a value may not be hashable
    **dict.fromkeys(map(id, _FILES), "opens a file"),
    **dict.fromkeys(map(id, _RANDOM), "draws random numbers"),
    **dict.fromkeys((id(getattr(time, name)) for name in _CLOCKS), "reads the clock"),
}
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_MAKERS = set(map(id, (np.random.default_rng, np.random.RandomState, random.Random)))
_REDIRECT = set(map(id, (contextlib.redirect_stdout, contextlib.redirect_stderr)))
_LOGS = "debug info warning error critical exception log".split()
_PER_WORKER = (io.IOBase, threading.local)  # each worker uses its own one, and that is right
_warned: weakref.WeakKeyDictionary[types.CodeType, set[type]] = weakref.WeakKeyDictionary()
_impure: weakref.WeakKeyDictionary[types.CodeType, bool] = weakref.WeakKeyDictionary()


def impurities(function: Callable[..., Any], leading: int = 0) -> list[Impurity]:
    """Return the side effects in the code of `function`, the first of each kind.

    Args:
        function: the host function.
        leading: the number of leading parameters that it may write into.
    """
    return _impurities(layers(function), leading)


def _impurities(called: list[Called], leading: int = 0) -> list[Impurity]:
    first: dict[str, Impurity] = {}
    for number, layer in enumerate(called):
        reading = Reading(layer, leading, wrapped=number > 0)
        is_caught = not _REDIRECT.isdisjoint([id(value) for _, value, *_ in reading.uses])
        may_print = reading.has_source and not is_caught  # without source: to any file
        found: list[tuple[int, str, str]] = []
        for text, value, line, _, bare_call in reading.uses:
            does = _does(value)
            if bare_call and id(value) in _MAKERS:
                found.append((line, "draws random numbers", bare_call))
            elif does and (may_print or value is not print):
                found.append((line, does, text))
        for text, line, in_argument, sets_item, (changed, *_) in reading.changes():
            if in_argument:
                found.append((line, "writes into an argument", text))
            elif not sets_item and changed is not sys.stdout and changed is not sys.stderr:
                found.append((line, "modifies outer state", text))
        for line, does, text in sorted(found, key=operator.itemgetter(0)):
            first.setdefault(does, Impurity(does, text, reading.file, line))
    return list(first.values())


def _does(value: Any) -> str:
    """Return the side effect of calling `value` or its methods; empty if there is none."""
    if value is sys.stdout or value is sys.stderr:
        return "prints"
    kind = type(value)
    is_method = kind in (types.BuiltinFunctionType, types.MethodType)
    owner = value.__self__ if is_method else value
    if issubclass(type(owner), _GENERATORS):
        return "draws random numbers"
    of_logging = kind is types.FunctionType and value.__module__ == "logging"
    if issubclass(type(owner), logging.Logger) or (of_logging and value.__name__ in _LOGS):
        return "prints"
    if is_method and issubclass(type(owner), type) and issubclass(owner, datetime.date):
        return "reads the clock" if value.__name__ in ("now", "utcnow", "today") else ""
    return _DOES.get(id(value), "")


def is_impure(function: Callable[..., Any]) -> bool:
    """Return whether the code of a pure host function has side effects, see `impurities`."""
    called = layers(function)
    code = _own_code(called)
    if code is not None and code not in _impure:
        _impure[code] = bool(_impurities(called))
    return code is not None and _impure[code]


def users_function(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the user's code that the function of a callback runs; None if it is a library's.

    A function of a library may call the user's, which it has in a closure, as that of equinox's
    ``filter_pure_callback`` does.
    """
    values: list[Any] = [function]
    for layer in layers(function):
        values += [*layer.known.values(), *closure_of(layer.function).values()]
    for value in values:
        called = called_by(value)
        if called is not None and is_user_code(called.function.__code__.co_filename):
            return value
    return None


def warn_of_impurity(
    function: Callable[..., Any], flavor: str = "pure", *, registered: bool = False
) -> None:
    """Warn about side effects in the code of a pure host function, once for each function.

    Args:
        function: the host function.
        flavor: ``"pure"``, or ``"jax pure"`` for a callback of JAX's own API.
        registered: whether the decorator has registered it.
    """
    if not is_impure(function) or not _is_first(function, ImpureFunctionWarning):
        return
    for each in impurities(function):
        advice = each.advice if registered else _ADVICE_OF_CALLS[each.does]
        warnings.warn_explicit(
            f"the {flavor} callback {name_of(function)} {each.does} ({each.what}, "
            f"{where_now(each.place)}), but JAX may remove, repeat or deduplicate its calls. "
            f"{advice}.",
            ImpureFunctionWarning,
            each.file,
            each.line,
        )


def warn_of_worker_state(function: Callable[..., Any], executor: str) -> None:
    """Warn if the source of a function shows that it keeps state, once for each function.

    Args:
        function: an io function whose calls run in other processes.
        executor: the option that says so, as the user typed it.
    """
    if not _is_first(function, WorkerStateWarning):
        return
    for layer in layers(function):
        reading = Reading(layer)
        found: list[tuple[int, str]] = []
        for text, line, in_argument, _, objects in reading.changes():
            if not in_argument and not any(issubclass(type(x), _PER_WORKER) for x in objects):
                found.append((line, text))
        for text, value, line, *_ in reading.uses:
            if issubclass(type(value), _GENERATORS):
                found.append((line, text))
        if found:
            line, text = min(found)
            where = where_now(_place(reading.file, line))
            warnings.warn_explicit(
                f"the io callback {name_of(function)} keeps state between calls ({text}, {where}), "
                f"but {executor} makes them in other processes, where each has a copy of its own: "
                "a call may not see what others changed, and this process sees nothing of it. "
                "Return what changes and pass it as an argument, or leave out the executor.",
                WorkerStateWarning,
                reading.file,
                line,
            )
            return


def _is_first(function: Callable[..., Any], category: type[Warning]) -> bool:
    """Return whether a function is examined for the first time for a category of warnings."""
    code = _own_code(layers(function))
    if code is None or category in _warned.setdefault(code, set()):
        return False
    _warned[code].add(category)
    return True


def _own_code(called: list[Called]) -> types.CodeType | None:
    """Return the code of the innermost function, which its decorators share with no other one."""
    return called[-1].function.__code__ if called else None


def _place(file: str, line: int) -> Frame:
    return Frame("", file, line, cell=is_cell(file))
