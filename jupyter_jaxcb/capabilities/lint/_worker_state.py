"""Warn about io functions that keep state between calls, if these run in other processes."""

from __future__ import annotations

import array
import ast
import collections
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

from ...stack.trace import is_cell
from ._purity import modified_state
from ._references import UNKNOWN, own_loads, python_function
from ._writes import base_of, local_names, tree_of

_CONTAINERS = (list, dict, set, bytearray, collections.deque, array.array, np.ndarray)
_MODULES = (types.ModuleType, type)
_CHANGES = frozenset(
    "add append appendleft clear discard extend extendleft insert pop popitem popleft remove "
    "reverse rotate sort subtract update".split()
)
_ADVANCE = (Iterator, np.random.Generator, np.random.RandomState, random.Random)
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
    python, _ = python_function(function)
    if python is None or python.__code__ in _warned:
        return
    _warned.add(python.__code__)
    first = min(_state(function, python), key=lambda found: found[1], default=None)
    if first is not None:
        what, line = first
        file = python.__code__.co_filename
        where = "line " if is_cell(file) else f"{os.path.basename(file)}:"
        warnings.warn_explicit(
            f"the io callback {name} keeps state between calls ({what}, {where}{line}), but "
            f"{executor} makes them in other processes, where each has a copy of its own: a call "
            "may not see what others changed, and this process sees nothing of it. Return what "
            "changes and pass it as an argument, or leave out the executor.",
            WorkerStateWarning,
            file,
            line,
        )


def _state(function: Callable[..., Any], python: types.FunctionType) -> Iterator[tuple[str, int]]:
    """Yield what the function changes outside of itself, and the line."""
    outside, once = _outside(python), _made_once(python)
    for what, line in [*modified_state(function), *_changes(python, outside)]:
        name = what.replace("[", ".").partition(".")[0]
        if not issubclass(type(outside.get(name)), _PER_WORKER) and (name, line) not in once:
            yield what, line
    for load in own_loads(function):
        value = getattr(load.value, "__self__", None) if _is_method(load.value) else load.value
        kept = issubclass(type(value), _ADVANCE) and not issubclass(type(value), _PER_WORKER)
        if kept and any(value is one for one in outside.values()):
            yield load.name, load.line


def _is_method(value: Any) -> bool:
    return isinstance(value, types.MethodType | types.BuiltinFunctionType)


def _outside(python: types.FunctionType) -> dict[str, Any]:
    """Return the global and closure variables that a function refers to."""
    code, cells = python.__code__, python.__closure__ or ()
    known = {name: value for name, value in python.__globals__.items() if name in code.co_names}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            known[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            known[name] = UNKNOWN
    return known


def _changes(python: types.FunctionType, outside: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield assignments to items and attributes, and calls that change a container.

    A cache, which is looked up before it is filled, is no state.
    """
    tree = tree_of(python)
    if tree is None:
        return
    first, own = python.__code__.co_firstlineno - 1, local_names(tree)
    caches = _looked_up(tree)
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            base = base_of(target) or ""
            value = UNKNOWN if base in own else outside.get(base, UNKNOWN)
            if isinstance(target, ast.Subscript):
                fixed = isinstance(target.slice, ast.Constant)
                changes = isinstance(value, _CONTAINERS) and (fixed or base not in caches)
            else:
                changes = isinstance(target, ast.Attribute) and isinstance(value, _MODULES)
            if changes:
                yield ast.unparse(target), first + target.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            value = UNKNOWN if base in own else outside.get(base, UNKNOWN)
            changes = node.func.attr in _CHANGES and isinstance(value, _CONTAINERS)
            if changes and base not in caches:
                yield ast.unparse(node.func), first + node.lineno


def _made_once(python: types.FunctionType) -> set[tuple[str, int]]:
    """Return names and lines below ``if NAME is None``, ``if not NAME``: each worker loads it."""
    first = python.__code__.co_firstlineno - 1
    found = set()
    for node in ast.walk(tree_of(python) or ast.Pass()):
        match node:
            case (
                ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]))
                | ast.If(test=ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)))
            ):
                lines = range(node.lineno, (node.body[-1].end_lineno or node.lineno) + 1)
                found.update((name, first + line) for line in lines)
    return found


def _looked_up(tree: ast.AST) -> set[str]:
    """Return the names in which a key is looked up: ``key in CACHE``, ``CACHE.get(key)``."""
    found: set[str | None] = set()
    catches = any(
        isinstance(node, ast.ExceptHandler) and "KeyError" in ast.unparse(node.type or node)
        for node in ast.walk(tree)
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            found.add(base_of(node.comparators[0]))
        elif isinstance(node, ast.Attribute) and node.attr == "get":
            found.add(base_of(node.value))
        elif catches and isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            found.add(base_of(node.value))
    return {name for name in found if name is not None}
