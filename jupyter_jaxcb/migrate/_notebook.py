"""Replace strings in the JSON of a notebook, keeping every other byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

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
