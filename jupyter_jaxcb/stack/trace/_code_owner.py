"""Classify code by its owner: this package, JAX, a library, or the user."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import sysconfig
from types import CodeType, FrameType

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
_INSTALLED = {"site-packages", "dist-packages"}  # in any environment

# Code objects of this package that are recognized on thread stacks. `diagnostics.record._running`
# reads the local variables of these frames.
# The functions that XLA (or an eager call) calls, and that make the host calls.
CROSSINGS: set[CodeType] = set()
# The crossings that wait for workers to make the calls, and check their `guard` while they wait.
WAITING: set[CodeType] = set()
# The functions in which a crossing waits for room where it keeps its host calls.
AWAITING_ROOM: set[CodeType] = set()
# The functions that call a crossing directly, outside any program.
EAGER: set[CodeType] = set()

_PARTS = ("jax_compat", "stack", "capabilities", "register", "diagnostics", "recording")
_OURS = tuple(f"{__name__.partition('.')[0]}.{part}" for part in _PARTS)
_RECORDING = f"{__name__.partition('.')[0]}.recording"


@functools.lru_cache(maxsize=4096)
def owner(file: str) -> str:
    """Return the owner of the code in `file`: "machinery" (JAX or us), "library" or "user"."""
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


def library_of(file: str) -> str:
    """Return the name of the installed package that `file` belongs to; empty for other files."""
    parts = file.replace("\\", "/").split("/")
    inside = (name for place, name in itertools.pairwise(parts) if place in _INSTALLED)
    return next(inside, "").removesuffix(".py") if owner(file) == "library" else ""


def is_user_code(file: str) -> bool:
    """Return whether the code in `file` belongs to the user: not to JAX, us or a library."""
    return owner(file) == "user"


def is_machinery(file: str) -> bool:
    """Return whether the code in `file` belongs to JAX or this package."""
    return owner(file) == "machinery"


def is_ours(file: str) -> bool:
    """Return whether the code in `file` belongs to this package."""
    return os.path.abspath(file).startswith(_PACKAGE)


def is_cell(file: str) -> bool:
    """Return whether `file` is the file name of a notebook cell.

    A kernel compiles cells under names of files that do not exist, a terminal under
    <ipython-input-...>. Other names in angle brackets are code outside a cell, such as %timeit's.
    """
    return not os.path.exists(file) and (not file.startswith("<") or "ipython-input" in file)


def is_own_module(name: str) -> bool:
    """Return whether host calls run through the module `name` of this package."""
    return name.startswith(_OURS)


def is_recording(frame: FrameType) -> bool:
    """Return whether `frame` records something."""
    return frame.f_globals.get("__name__", "").startswith(_RECORDING)
