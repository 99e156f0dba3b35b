"""Give code under ``%%time`` and ``%%timeit`` the file name and the lines of its cell.

IPython compiles it under one name for all cells, ``<timed exec>``, and counts its lines from the
line below the magic: neither the source of such a line nor its cell could be shown.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...stack import is_cell, stack_of
from ..display import blank_lines
from ._code_clock import CodeClock

_TIMED = ("<timed exec>", "<timed eval>", "<magic-timeit>")


class TimedCode:
    """What IPython's compiler does differently while the extension is loaded."""

    def __init__(self, shell: InteractiveShell, clock: CodeClock) -> None:
        self._clock = clock
        self._compile: Any = shell.compile
        self._before = self._own = type(shell.compile)

    def open(self) -> None:
        """Begin to rename such code."""
        before = self._before = type(self._compile)

        def compile_code(own: Any, code: Any, name: str, *mode: Any, **options: Any) -> Any:
            if name in _TIMED and isinstance(code, ast.AST):
                name = _placed(code, name)
            self._clock.compiles()
            try:
                return before.__call__(own, code, name, *mode, **options)
            finally:
                self._clock.start(code)

        self._own = type(before.__name__, (before,), {"__call__": compile_code})
        self._compile.__class__ = self._own

    def close(self) -> None:
        """Leave IPython's compiler as it was."""
        if type(self._compile) is self._own:
            self._compile.__class__ = self._before


def cell_frame() -> FrameType | None:
    """Return the innermost frame of the notebook's code; None outside of a cell."""
    callers = stack_of(sys._getframe(1))
    return next((frame for frame in callers if is_cell(frame.f_code.co_filename)), None)


def _placed(tree: ast.AST, name: str) -> str:
    """Move `tree` to its lines in the cell, and return the file name of the cell."""
    frame = cell_frame()
    if frame is None:
        return name
    _move(tree, frame.f_lineno, lines_as_typed(frame))
    return frame.f_code.co_filename


def lines_as_typed(frame: FrameType) -> list[str]:
    """Return the lines of the cell that calls a cell magic in `frame`, which tracebacks show then.

    IPython makes one line of the magic and all that is below it: ``run_cell_magic(...)``.
    """
    file, line = frame.f_code.co_filename, frame.f_lineno
    lines = linecache.getlines(file)
    magic = _magic(lines, line)
    if magic is not None:
        head, body = magic
        # Not splitlines, for which lines end in more ways than for Python.
        below = [f"{part}\n" for part in body.rstrip("\n").split("\n")]
        lines = [*lines[: line - 1], head, *below]
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    return lines


def _move(tree: ast.AST, line: int, lines: Sequence[str]) -> None:
    """Give the nodes of `tree` their lines in a cell, of which one calls the magic: `line`."""
    if not "".join(lines[line - 1 : line]).startswith("%%"):
        _put_at(tree, line)
        return
    ast.increment_lineno(tree, line + blank_lines("".join(lines[line:])))
    match tree:
        case ast.Module(body=[ast.FunctionDef(name="inner", body=[*_, ast.For() as loop, _, _])]):
            # All that %%timeit has around the code is in its own line, with the setup.
            code, loop.body = loop.body, []
            _put_at(tree, line)
            loop.body = code


def _put_at(tree: ast.AST, line: int) -> None:
    """Give all nodes of `tree` one line; those that had several lines have no column there."""
    node: Any
    for node in ast.walk(tree):
        if "end_lineno" in node._attributes:
            if node.end_lineno != node.lineno:
                node.col_offset = node.end_col_offset = 0
            node.lineno = node.end_lineno = line


def _magic(lines: Sequence[str], number: int) -> tuple[str, str] | None:
    """Return line and body of the cell magic in a line of transformed code, if it is all of it."""
    if not all(above.startswith("%%") for above in lines[: number - 1]):
        return None
    try:
        call = ast.parse("".join(lines[number - 1 :]).strip(), mode="eval").body
    except SyntaxError:
        return None
    match call:
        case ast.Call(
            func=ast.Attribute(attr="run_cell_magic"),
            args=[ast.Constant(str(magic)), ast.Constant(str(line)), ast.Constant(str(body))],
        ):
            return f"%%{magic} {line}".rstrip() + "\n", body
    return None
