"""Warn about io functions that keep state between calls, if these run in other processes."""

from __future__ import annotations

import io
import os
import random
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...recording import on_one_line
from ...stack.trace import is_cell
from ._changes import How, Owner, Source, is_container, sources
from ._purity import is_state
from ._references import as_far_as_readable, own_code

_DRAWN = (np.random.Generator, np.random.RandomState, random.Random)
_PER_WORKER = (io.IOBase, threading.local)  # each worker uses its own one, and that is right
_warned: weakref.WeakSet[types.CodeType] = weakref.WeakSet()


class WorkerStateWarning(UserWarning):
    """An io function keeps state between calls, which run in other processes.

    Each process has its own copy of a global variable, and sees only what its own calls change;
    which calls these are may differ in each run. The message names the line. To silence the warning
    where that is intended:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.WorkerStateWarning)
    """


def warn_of_worker_state(function: Callable[..., Any], name: str, executor: str) -> None:
    """Warn if the source of a function shows that it keeps state, once for each function.

    Args:
        function: an io function whose calls run in other processes.
        name: its name.
        executor: the option that says so, as the user typed it.
    """
    code = own_code(function)
    if code is None or code in _warned:
        return
    _warned.add(code)
    for source in as_far_as_readable(sources(function)):
        first = min(as_far_as_readable(_state(source)), key=lambda found: found[1], default=None)
        if first is None:
            continue
        what, line = first
        where = "line " if is_cell(source.file) else f"{os.path.basename(source.file)}:"
        where = on_one_line(where)
        warnings.warn_explicit(
            f"the io callback {name} keeps state between calls ({what}, {where}{line}), but "
            f"{executor} makes them in other processes, where each has a copy of its own: a call "
            "may not see what others changed, and this process sees nothing of it. Return what "
            "changes and pass it as an argument, or leave out the executor.",
            WorkerStateWarning,
            source.file,
            line,
        )
        return


def _state(source: Source) -> Iterator[tuple[str, int]]:
    """Yield what a function changes outside of itself, and the line."""
    for one in source.changes():
        in_worker = any(issubclass(type(value), _PER_WORKER) for value in one.values)
        filled = one.how in (How.ITEM, How.FIXED_ITEM) and is_container(one.values[0])
        if one.owner is not Owner.ARGUMENT and (is_state(one) or filled) and not in_worker:
            yield one.what, one.line
    for load in source.loads:
        if issubclass(type(load.value), _DRAWN) and source.is_variable(load):
            yield load.name, load.line
