"""Parse notebook cells, with lines in IPython syntax replaced by ``pass``."""

from __future__ import annotations

import ast
import warnings

from ._edits import Text


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a module.

    Raises:
        SyntaxError: the source is not Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as those of invalid escapes in strings
        try:
            return ast.parse(source)
        except (ValueError, RecursionError, MemoryError) as error:  # null byte; deep nesting
            raise SyntaxError(str(error)) from None


def parse_cell(source: str) -> ast.Module | None:
    """Return the syntax tree of a cell; None if it is not Python, as with ``%%bash``.

    Raises:
        SyntaxError: it is neither Python nor IPython syntax.
    """
    lines = Text(source).lines
    starts = [number for number, line in enumerate(lines) if line.strip()]
    is_magic = bool(starts) and lines[starts[0]].startswith("%%")
    if is_magic:
        lines[starts[0]] = _passing(lines[starts[0]])
    while True:
        try:
            return parse("".join(lines))
        except SyntaxError as error:
            number = _magic_at(lines, error.lineno)
            if number is not None:
                lines[number] = _passing(lines[number])
            elif is_magic:
                return None
            else:
                raise


def _magic_at(lines: list[str], lineno: int | None) -> int | None:
    """Return the last line of IPython syntax up to the syntax error; None if there is none."""
    if lineno is None:
        return None
    for number in range(min(lineno, len(lines)) - 1, -1, -1):
        if _is_ipython(lines[number].strip()):
            return number
    return None


def _is_ipython(line: str) -> bool:
    if line.startswith(("%", "!", "?", ",", ";", "/")) or line.endswith("?"):
        return True
    _, sign, value = line.partition("=")
    return bool(sign) and value.strip().startswith(("!", "%"))


def _passing(line: str) -> str:
    """Replace `line` by a ``pass`` with the same indentation."""
    blank = line[: len(line) - len(line.lstrip())]
    end = line[len(line.rstrip("\r\n")) :]
    return f"{blank}pass{end}"
