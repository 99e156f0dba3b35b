"""Whose code is in a file, or runs in a frame: ours, JAX's, a library's, the user's."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from types import CodeType

import jax

import jupyter_jaxcb_worker


def _folder(module: object) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(str(getattr(module, "__file__", "")))), "")


JAX_FOLDER = _folder(jax)
_PACKAGE = _folder(sys.modules[__name__.partition(".")[0]])
_WORKER = _folder(jupyter_jaxcb_worker)
_LIBRARIES = tuple(
    {
        os.path.abspath(path) + os.sep
        for name, path in sysconfig.get_paths().items()
        if name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_INSTALLED = {"site-packages", "dist-packages"}  # of any environment

# Functions of ours are looked for on the stacks of threads by their code; what their variables hold
# is said where they are read, see `_running`.
# What XLA, or an eager call, calls, and what makes the host calls.
CROSSINGS: set[CodeType] = set()
# Those among them that wait for others to make the calls, and look at their `guard` meanwhile.
WAITING: set[CodeType] = set()
# What calls a crossing itself, outside of any program.
EAGER: set[CodeType] = set()

_OURS = tuple(f"{__name__.partition('.')[0]}.{part}" for part in ("stack", "diagnostics"))


@functools.lru_cache(maxsize=4096)
def owner(file: str) -> str:
    """Who wrote the code in `file`: "machinery" (ours or JAX's), "library" or "user"."""
    try:
        path = os.path.abspath(file)
    except OSError:  # the working directory is gone
        path = file
    if path.startswith((_PACKAGE, _WORKER, JAX_FOLDER)):
        return "machinery"
    if file.startswith("<frozen") or path.startswith(_LIBRARIES):
        return "library"
    if not _INSTALLED.isdisjoint(path.split(os.sep)):
        return "library"
    return "user"


def is_user_code(file: str) -> bool:
    """Whether the code in `file` is neither JAX's, nor ours, nor an installed library's."""
    return owner(file) == "user"


def is_machinery(file: str) -> bool:
    """Whether the code in `file` is JAX's or ours."""
    return owner(file) == "machinery"


def is_ours(file: str) -> bool:
    """Whether the code in `file` is this package's."""
    return os.path.abspath(file).startswith(_PACKAGE)


def is_cell(file: str) -> bool:
    """Whether a code's file name stands for a notebook cell.

    A kernel compiles cells under names of files that do not exist, a terminal under
    <ipython-input-...>; other names in brackets are code without a cell, as %timeit's.
    """
    return not os.path.exists(file) and (not file.startswith("<") or "ipython-input" in file)


def is_own_module(name: str) -> bool:
    """Whether the module called `name` is one of ours that host calls run through."""
    return name.startswith(_OURS)
