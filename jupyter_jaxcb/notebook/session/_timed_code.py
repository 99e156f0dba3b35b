"""Give code under ``%%time`` and ``%%timeit`` the file name and the lines of its cell.

IPython compiles it under one name for all cells, ``<timed exec>``, and counts its lines from the
line below the magic: neither the source of such a line nor its cell could be shown.
"""

from __future__ import annotations

import ast
import linecache
import sys
from types import FrameType
from typing import Any

from ...stack import is_cell, stack_of
from ..display import blank_lines

TIMED = ("<timed exec>", "<timed eval>", "<magic-timeit>")


def cell_frame() -> FrameType | None:
    """Return the innermost frame of the notebook's code; None outside of a cell."""
    callers = stack_of(sys._getframe(1))
    return next((frame for frame in callers if is_cell(frame.f_code.co_filename)), None)


def move_to_cell(tree: ast.AST, name: str) -> str:
    """Move `tree` to its lines in the cell that runs a magic, and return the cell's file name.

    Outside of a cell, return `name`.
    """
    frame = cell_frame()
    if frame is None:
        return name
    line, lines = frame.f_lineno, lines_as_typed(frame)
    if not "".join(lines[line - 1 : line]).startswith("%%"):
        _put_at(tree, line)
        return frame.f_code.co_filename
    ast.increment_lineno(tree, line + blank_lines("".join(lines[line:])))
    match tree:
        case ast.Module(body=[ast.FunctionDef(name="inner", body=[*_, ast.For() as loop, _, _])]):
            # All that %%timeit has around the code is in its own line, with the setup.
            code, loop.body = loop.body, []
            _put_at(tree, line)
            loop.body = code
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


def _put_at(tree: ast.AST, line: int) -> None:
    """Give all nodes of `tree` one line; those that had several lines have no column there."""
    node: Any
    for node in ast.walk(tree):
        if "end_lineno" in node._attributes:
            if node.end_lineno != node.lineno:
                node.col_offset = node.end_col_offset = 0
            node.lineno = node.end_lineno = line


def _magic(lines: list[str], number: int) -> tuple[str, str] | None:
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
