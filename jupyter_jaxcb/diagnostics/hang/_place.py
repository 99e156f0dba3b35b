"""Where in the user's code a thread is, and what that line waits for."""

from __future__ import annotations

import ast
import inspect
import linecache
import threading
from types import FrameType
from typing import Any, NamedTuple

import jax
import numpy as np

from ...recording import Frame
from ...stack.trace import JAX_FOLDER, is_cell, is_user_code

_BLOCKS = "block_until_ready"
_COMPILED = type(jax.jit(len))
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
    innermost = frame
    above = []  # the files of libraries in which it is
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        above.append(frame.f_code.co_filename)
        frame = frame.f_back
    of_jax = [file.startswith(JAX_FOLDER) for file in above]
    in_jax, at_lock, awaits_jax = any(of_jax), threading.__file__ in above, of_jax[:1] == [True]
    if frame is None:
        return Place("code of a library", in_jax, at_lock, awaits_jax)
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line).strip()
    where = Frame("", file, line, cell=is_cell(file)).where
    for tree in _expressions_now(frame):
        used = _used_by(tree, frame)
        of_arrays = any(isinstance(value, (jax.Array, _COMPILED)) for value in used)
        blocks = isinstance(tree, ast.Call) and getattr(tree.func, "attr", "") == _BLOCKS
        at_lock |= isinstance(used[0], _LOCKS)
        in_jax |= blocks or of_arrays
        awaits_jax |= frame is innermost and (blocks or _runs_or_converts(tree, frame, of_arrays))
    at_lock &= not any(of_jax)
    return Place(f"{where}, {source!r}" if source else where, in_jax, at_lock, awaits_jax)


def _runs_or_converts(tree: ast.expr, frame: FrameType, of_arrays: bool) -> bool:
    """Return whether this calls a compiled function, or converts an array of JAX."""
    function = _value(tree.func, frame) if isinstance(tree, ast.Call) else None
    converts = isinstance(function, np.ufunc) or any(function is other for other in _CONVERSIONS)
    return isinstance(function, _COMPILED) or (converts and of_arrays)


def _used_by(tree: ast.expr, frame: FrameType) -> list[Any]:
    """Return what a call needs: the object whose method it is, the function, the arguments.

    An argument that is itself the result of a call counts as the function that returned it.
    """
    used = [tree]
    if isinstance(tree, ast.Call):
        used = [node.func if isinstance(node, ast.Call) else node for node in tree.args]
        used.insert(0, tree.func)
        if isinstance(tree.func, ast.Attribute):
            used.insert(0, tree.func.value)
    return [_value(node, frame) for node in used]


def _expressions_now(frame: FrameType) -> list[ast.expr]:
    """Return what `frame` evaluates now, if it is in one line.

    At the beginning of a ``with`` block these are its context managers.
    """
    at: Any = inspect.getframeinfo(frame, context=0).positions
    if at is None or at.lineno is None or at.col_offset is None:
        return []
    is_one_line = at.lineno == at.end_lineno
    line = linecache.getline(frame.f_code.co_filename, at.lineno).encode()
    text = line[at.col_offset : at.end_col_offset if is_one_line else None].decode().strip()
    try:
        if text.startswith("with "):  # some Pythons name the whole block
            block: Any = ast.parse(text if is_one_line else f"{text} pass").body[0]
            return [item.context_expr for item in block.items]
        return [ast.parse(text, mode="eval").body] if is_one_line else []
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
