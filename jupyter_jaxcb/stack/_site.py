"""From a bind to the line of user code it was made on."""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import sys
import sysconfig
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import jax

import jupyter_jaxcb_worker

from ..recording import Frame, Site
from . import _jax

MAX_CALLERS = 8
_AROUND = {"scan", "while", "cond", "vmap"}

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_WORKER = os.path.dirname(os.path.abspath(jupyter_jaxcb_worker.__file__)) + os.sep
_JAX = os.path.dirname(os.path.abspath(jax.__file__)) + os.sep
_LIBRARIES = tuple(
    {
        os.path.abspath(path) + os.sep
        for name, path in sysconfig.get_paths().items()
        if name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_INSTALLED = {"site-packages", "dist-packages"}  # of any environment


@functools.lru_cache(maxsize=4096)
def _owner(file: str) -> str:
    """Who wrote the code in `file`: "machinery" (ours or JAX's), "library" or "user"."""
    try:
        path = os.path.abspath(file)
    except OSError:  # the working directory is gone
        path = file
    if path.startswith((_OWN, _WORKER, _JAX)):
        return "machinery"
    if file.startswith("<frozen") or path.startswith(_LIBRARIES):
        return "library"
    if not _INSTALLED.isdisjoint(path.split(os.sep)):
        return "library"
    return "user"


def is_user_code(file: str) -> bool:
    """Whether the code in `file` is neither JAX's, nor ours, nor an installed library's."""
    return _owner(file) == "user"


def is_machinery(file: str) -> bool:
    """Whether the code in `file` is JAX's or ours."""
    return _owner(file) == "machinery"


def is_ours(file: str) -> bool:
    """Whether the code in `file` is this package's."""
    return os.path.abspath(file).startswith(_OWN)


def is_cell(file: str) -> bool:
    """Whether a code's file name stands for a notebook cell.

    A kernel compiles cells under names of files that do not exist, a terminal under
    <ipython-input-...>; other names in brackets are code without a cell, as %timeit's.
    """
    return not os.path.exists(file) and (not file.startswith("<") or "ipython-input" in file)


@functools.lru_cache(maxsize=4096)
def _place(code: CodeType, file: str, instruction: int) -> tuple[int, int, bool, str]:
    """Line, column, whether it is a notebook cell, and the source line.

    `file` is the code's own; equality of code does not look at it.
    """
    line, _, column, _ = next(itertools.islice(code.co_positions(), instruction // 2, None))
    line = line or code.co_firstlineno
    return line, column or 0, is_cell(file), linecache.getline(file, line).strip()


class Found(NamedTuple):
    """The site of the bind that is being made now, and what the stack says beyond it."""

    site: Site
    around: tuple[tuple[str, int | None], ...]  # see `Bind`
    dispatches: tuple[FrameType, ...]  # of jitted functions that are called and not compiled yet
    loops: tuple[tuple[tuple[str, int | None], ...], ...]  # within each of these, innermost first
    kinds: frozenset[str]  # of all that is being traced, see `_jax.traced_by`


def find_site(flavor: str, function: str) -> Found:
    """Looks for the line of user code that makes a bind now.

    It is the innermost frame of user code; where there is none (a library's own thread, say) the
    innermost frame outside JAX and this package. Libraries in between stay in `callers`.
    """
    frames, traced = _frames()
    owners = [_owner(frame.f_code.co_filename) for frame in frames]
    innermost = owners.index("user") if "user" in owners else 0
    if not frames:
        return Found(Site(flavor, function, "<unknown>", 0, 0, cell=True), *traced)
    frame = frames[innermost]
    line, column, cell, source = _place(frame.f_code, frame.f_code.co_filename, frame.f_lasti)
    callers = tuple(
        Frame(f.f_code.co_name, f.f_code.co_filename, f.f_lineno or 0)
        for place, (f, owner) in enumerate(zip(frames, owners, strict=True))
        if place != innermost and (owner == "user" or place < innermost)
    )
    site = Site(
        flavor, function, frame.f_code.co_filename, line, column, cell, source,
        callers[:MAX_CALLERS],
    )  # fmt: skip
    return Found(site, *traced)


def site_of_frames(
    flavor: str, function: str, frames: Sequence[tuple[CodeType, int]]
) -> Site | None:
    """As `find_site`, of a bind whose stack is gone: code and instruction, innermost first.

    None where no user code is in it.
    """
    for code, instruction in frames:
        file = code.co_filename
        if _owner(file) == "user":
            line, column, cell, source = _place(code, file, instruction)
            return Site(flavor, function, file, line, column, cell, source)
    return None


def _hides_vmaps(code: CodeType) -> bool:
    """Whether the vmaps around do not map what `code` calls: a host function, a batching rule.

    The rule of a `jax.custom_batching.custom_vmap` has the whole batch in hand.
    """
    if _jax.has_the_batch_in_hand(code):
        return True
    return code.co_name == "cross" and code.co_filename.startswith(_OWN)


def _frames() -> tuple[list[FrameType], tuple[Any, Any, Any, Any]]:
    """The stack without JAX and this package, innermost first, up to the first user module.

    And what JAX's own frames tell, as `Found` has it.
    """
    frames, around, dispatches, loops, kinds = [], [], [], [], set()
    within: list[tuple[str, int | None]] = []
    frame: FrameType | None = sys._getframe(2)
    inner = False
    while frame is not None:
        if _owner(frame.f_code.co_filename) == "machinery":
            inner = inner or _hides_vmaps(frame.f_code)
            traced = _jax.traced_by(frame)
            if traced is not None:
                if traced[0] == "dispatch":
                    dispatches.append(frame)
                    loops.append(tuple(within))
                elif "jit" not in kinds and not inner:
                    around.append(traced)
                if traced[0] in ("scan", "while"):
                    within.append(traced)
                kinds.add(traced[0])
        else:
            frames.append(frame)
            if frame.f_code.co_name == "<module>" and _owner(frame.f_code.co_filename) == "user":
                break
        frame = frame.f_back
    inside = [traced for traced in around if traced[0] in _AROUND]
    return frames, (tuple(inside), tuple(dispatches), tuple(loops), frozenset(kinds))
