"""Tell where a thread is: at which line of the user, and whether JAX's own Python runs."""

from __future__ import annotations

import functools
import os
from types import FrameType

from ...recording import Frame
from ...stack.trace import JAX_FOLDER, is_cell, is_user_code

_JAX, _USER, _LIBRARY, _ANY = "jax", "user", "library", ""
_INSTALLED = ("site-packages", "dist-packages")
# JAX's other packages, and those that work for whoever calls them, as Python's own modules do.
_OWNERS = {"jaxlib": _JAX, "numpy": _ANY, "ml_dtypes": _ANY, "opt_einsum": _ANY}


def place_of(frame: FrameType | None) -> tuple[Frame | None, bool]:
    """Return the innermost line of user code, and whether JAX's own Python runs for that line.

    Args:
        frame: the innermost frame of a thread.
    """
    runs = _ANY
    while frame is not None:
        code = frame.f_code
        owner = _owner(code.co_filename)
        runs = runs or owner
        if owner == _USER:
            return _frame(code.co_name, code.co_filename, frame.f_lineno), runs == _JAX
        frame = frame.f_back
    return None, runs == _JAX


@functools.lru_cache(maxsize=4096)
def _owner(file: str) -> str:
    """Return whose work the code in `file` does; `_ANY`: that of its caller."""
    if is_user_code(file):
        return _USER
    path = os.path.normpath(file)
    if path.startswith(JAX_FOLDER):
        return _JAX
    folders = path.split(os.sep)
    for name in _INSTALLED:
        if name in folders[:-1]:
            return _OWNERS.get(folders[folders.index(name) + 1], _LIBRARY)
    return _ANY


@functools.lru_cache(maxsize=4096)
def _frame(function: str, file: str, line: int) -> Frame:
    return Frame(function, file, line, cell=is_cell(file))
