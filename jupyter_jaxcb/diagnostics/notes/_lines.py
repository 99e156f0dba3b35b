"""Follow the lines of the user's code: what each assigns, and the iterations of its loops."""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import weakref
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple


class Loop(NamedTuple):
    """The lines of a ``for`` or ``while`` statement."""

    header: int
    last: int


@functools.lru_cache(maxsize=1024)
def stores(code: CodeType) -> dict[int, tuple[str, ...]]:
    """Return the names that each line assigns."""
    found: dict[int, list[str]] = {}
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno if instruction.positions else None
        if line is not None and instruction.opname.startswith("STORE_"):
            found.setdefault(line, []).extend(_stored(instruction))
    return {line: tuple(dict.fromkeys(names)) for line, names in found.items()}


def _stored(instruction: dis.Instruction) -> Iterator[str]:
    """Return the variables; since Python 3.13 an instruction can load or store two."""
    if instruction.opname in ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE"):
        return
    names = instruction.argval if isinstance(instruction.argval, tuple) else [instruction.argval]
    count = instruction.opname.count("STORE_")
    yield from (name for name in names[:count] if isinstance(name, str))


@functools.lru_cache(maxsize=1024)
def target(code: CodeType, instruction: int) -> str:
    """Return the variable that gets the result of an instruction; "" if it is used otherwise.

    A returned result counts as a variable, with the name of the function and ``()``.
    """
    # Until Python 3.13, a frame that calls a function of Python is in the cache of the instruction.
    until = [one for one in dis.get_instructions(code) if one.offset <= instruction]
    after = next((one for one in dis.get_instructions(code) if one.offset > instruction), None)
    if after is None or until[-1].opname.startswith("UNPACK_"):  # of several variables
        return ""
    if after.opname == "RETURN_VALUE":
        return f"{code.co_name}()"
    names = [*_stored(after)] if after.opname.startswith("STORE_") else []
    return names[0] if names else ""


def loops(code: CodeType) -> tuple[Loop, ...]:
    """Return the loops of a function, the outermost first."""
    return _loops_of(code, code.co_filename)


@functools.lru_cache(maxsize=1024)  # equal code objects can be of several files
def _loops_of(code: CodeType, file: str) -> tuple[Loop, ...]:
    own = {line for _, _, line in code.co_lines()}
    lines = linecache.getlines(file)
    text = "".join("\n" if line.startswith("%%") else line for line in lines)
    return tuple(loop for loop in _loops_in(text) if loop.header in own)


@functools.lru_cache(maxsize=64)
def _loops_in(text: str) -> tuple[Loop, ...]:
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError):
        return ()
    found = [n for n in nodes if isinstance(n, (ast.For, ast.While, ast.AsyncFor))]
    return tuple(sorted(Loop(n.lineno, n.end_lineno or n.lineno) for n in found))


class Running:
    """A function of the user that runs: its line, and the iterations of its loops."""

    def __init__(self, frame: FrameType, outside: Sequence[Loop] = ()) -> None:
        self._loops = [loop for loop in loops(frame.f_code) if loop not in outside]
        self._iterations: dict[Loop, int] = {}
        self.line = frame.f_lineno
        self.has_failed = False  # an exception left the line before it assigned anything
        # The last array that is noted under each name, which the user may delete.
        self.noted: dict[str, weakref.ref[Any]] = {}

    def reaches(self, line: int) -> None:
        """Count the iterations."""
        for loop in self._loops:
            if line == loop.header:
                inside = loop.header <= self.line <= loop.last and loop in self._iterations
                self._iterations[loop] = self._iterations[loop] + 1 if inside else 0
        self.line, self.has_failed = line, False

    def iterations(self) -> list[int]:
        """Return the iteration of each loop around the line, the outermost first."""
        return [
            self._iterations.get(loop, 0)
            for loop in self._loops
            if loop.header <= self.line <= loop.last
        ]


def leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the arrays in a value, with their names, such as ``params['w']``."""
    import jax

    if isinstance(value, jax.Array):
        return [(name, value)]
    try:
        found, _ = jax.tree_util.tree_flatten_with_path(value)
    except Exception:  # not a tree: a dict with keys that have no order, a class in a bad state
        return []
    return [
        (name + jax.tree_util.keystr(path), leaf)
        for path, leaf in found
        if isinstance(leaf, jax.Array)
    ]
