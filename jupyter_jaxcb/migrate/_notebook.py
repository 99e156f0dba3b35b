"""Replace strings in the JSON of a notebook, keeping every other byte."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from ._edits import Text

_BLANKS = " \t\n\r"
_DECODER = json.JSONDecoder()
Place = tuple[str | int, ...]  # ("cells", 3, "source", 0)


class Span(NamedTuple):
    """The position of a value in the text."""

    place: Place
    start: int
    end: int


def spans(text: str) -> dict[Place, Span]:
    """Return the position of each value of the valid JSON document `text`."""
    return {span.place: span for span in _value(text, _skip(text, 0), ())}


def with_sources(text: str, sources: dict[int, str]) -> str:
    """Replace the sources of some code cells in the notebook `text`.

    Args:
        text: the JSON of the notebook.
        sources: the new sources by index of the cell.
    """
    places = spans(text)
    cells = json.loads(text)["cells"]
    edits: list[tuple[Span, str]] = []
    for number, source in sources.items():
        place: Place = ("cells", number, "source")
        old = cells[number]["source"]
        if isinstance(old, str):
            edits.append((places[place], _literal(text, places[place], source)))
            continue
        new = source.splitlines(keepends=True)
        if len(new) == len(old):
            spots = [places[(*place, line)] for line in range(len(old))]
            edits += [
                (spot, _literal(text, spot, line))
                for spot, line, before in zip(spots, new, old, strict=True)
                if line != before
            ]
        else:
            edits.append((places[place], _array(text, places, place, new)))
    for span, literal in sorted(edits, reverse=True, key=lambda edit: edit[0].start):
        text = text[: span.start] + literal + text[span.end :]
    return text


def _literal(text: str, span: Span, value: str) -> str:
    """Return `value` as JSON, escaping non-ASCII characters if the old literal did."""
    return json.dumps(value, ensure_ascii=text[span.start : span.end].isascii())


def _array(text: str, places: dict[Place, Span], place: Place, lines: list[str]) -> str:
    """Return `lines` as a JSON array with the layout of the old one."""
    whole = places[place]
    items = [span for span in places.values() if span.place[:-1] == place]
    opening = text[whole.start : items[0].start]
    between = "," + (opening[1:] or " ")
    if len(items) > 1:
        between = text[items[0].end : items[1].start]
    closing = text[items[-1].end : whole.end]
    return opening + between.join(_literal(text, whole, line) for line in lines) + closing


def _value(text: str, start: int, place: Place) -> Iterator[Span]:
    """Yield the spans of the value that begins at `start` and of its parts, parts first."""
    opening = text[start]
    if opening not in "{[":
        end = (
            scanstring(text, start + 1)[1]
            if opening == '"'
            else _DECODER.raw_decode(text, start)[1]
        )
        yield Span(place, start, end)
        return
    end = _skip(text, start + 1)
    number = 0
    while text[end] not in "}]":
        key: Any = number
        if opening == "{":
            key, end = scanstring(text, end + 1)
            end = _skip(text, _skip(text, end) + 1)  # the colon
        for span in _value(text, end, (*place, key)):
            yield span
            if span.place == (*place, key):
                end = span.end
        end = _skip(text, end)
        if text[end] == ",":
            end = _skip(text, end + 1)
        number += 1
    yield Span(place, start, end + 1)


def _skip(text: str, start: int) -> int:
    """Return the next position that is not blank."""
    while start < len(text) and text[start] in _BLANKS:
        start += 1
    return start


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
