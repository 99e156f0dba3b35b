"""Where in the user's code a thread is, and what that line waits for."""

from __future__ import annotations

import ast
import linecache
import threading
from types import FrameType
from typing import Any, NamedTuple

import jax
import numpy as np

from ...recording import Frame
from ...stack.trace import IS_TRIED, JAX_FOLDER, is_cell, is_user_code

_IN_JAX = type(jax.jit(len))
_CONVERSIONS = (np.asarray, np.array, float, int, bool)
_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Condition, threading.Event,
          threading.Semaphore, threading.Barrier)  # fmt: skip


class Place(NamedTuple):
    """Where a thread is.

    Attributes:
        line: the innermost line of the user, with its text.
        in_jax: whether it is inside JAX.
        at_lock: whether it waits for a lock, or for something made of locks.
        awaits_jax: whether nothing but JAX can be what it waits for: neither something that JAX
            calls, nor something that gets an array.
    """

    line: str
    in_jax: bool = False
    at_lock: bool = False
    awaits_jax: bool = False


def place_of(frame: FrameType | None) -> Place:
    """Return the place of a thread, given its innermost frame; None: it runs no Python."""
    of_jax = at_lock = False
    innermost = frame
    in_code_of_jax = frame is not None and frame.f_code.co_filename.startswith(JAX_FOLDER)
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        of_jax = of_jax or frame.f_code.co_filename.startswith(JAX_FOLDER)
        at_lock = at_lock or frame.f_code.co_filename == threading.__file__
        frame = frame.f_back
    if frame is None:
        return Place("code of a library", of_jax, at_lock, in_code_of_jax)
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line).strip()
    where = Frame("", file, line, cell=is_cell(file)).where
    now = _expressions_now(frame)
    used = [value for tree in now for value in _used_by(tree, frame)]
    awaits = any(map(_awaits_array, now))
    waits = awaits or any(_runs_or_converts(tree, frame) for tree in now)
    return Place(
        f"{where}, {source!r}" if source else where,
        of_jax or awaits or any(isinstance(one, (jax.Array, _IN_JAX)) for one in used),
        not of_jax and (at_lock or any(isinstance(one, _LOCKS) for one in used[:1])),
        in_code_of_jax or (waits and frame is innermost),
    )


def _used_by(tree: ast.expr, frame: FrameType) -> list[Any]:
    """Return what a call needs: the object whose method it is, the function, the arguments.

    An argument that is itself the result of a call counts as the function that returned it.
    """
    used = [tree]
    if isinstance(tree, ast.Call):
        returned = (node.func if isinstance(node, ast.Call) else node for node in tree.args)
        used = [tree.func, *returned]
        if isinstance(tree.func, ast.Attribute):
            used.insert(0, tree.func.value)
    return [_value(node, frame) for node in used]


def _awaits_array(tree: ast.expr) -> bool:
    function = tree.func if isinstance(tree, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == "block_until_ready"


def _runs_or_converts(tree: ast.expr, frame: FrameType) -> bool:
    """Return whether a call is that of a compiled function, or converts an array of JAX."""
    if not isinstance(tree, ast.Call):
        return False
    function, given = _value(tree.func, frame), _used_by(tree, frame)
    converts = isinstance(function, np.ufunc) or any(function is one for one in _CONVERSIONS)
    return isinstance(function, _IN_JAX) or (
        converts and any(isinstance(one, (jax.Array, _IN_JAX)) for one in given)
    )


def _expressions_now(frame: FrameType) -> list[ast.expr]:
    """Return what `frame` evaluates now, if it is in one line.

    At the beginning of a ``with`` block these are its context managers. Nothing is known on a
    Python where the positions of instructions were not tried.
    """
    if not IS_TRIED:
        return []
    first, last, begin, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if first is None or begin is None or end is None:
        return []
    line = linecache.getline(frame.f_code.co_filename, first).encode()
    text = line[begin : end if first == last else None].decode().strip()
    try:
        if text.startswith("with "):  # Python 3.11: the whole block
            (block,) = ast.parse(text if first == last else f"{text} pass").body
            items = block.items if isinstance(block, ast.With) else []
            return [item.context_expr for item in items]
        return [ast.parse(text, mode="eval").body] if first == last else []
    except SyntaxError:
        return []


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of an expression if that runs no code of the user; None for any other."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, frame), "__dict__", {}).get(node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        held, key = _value(node.value, frame), node.slice.value
        if type(held) is dict:
            return held.get(key)
        if type(held) in (list, tuple) and type(key) is int and key < len(held):
            return held[key]
    return None
