"""The markup of outputs, which reads well without the style sheet and without links, too.

The data of an output is the same in every run, so it has no ids and numbers of cells. JupyterLab's
renderer gets them from the metadata, which has a `Spot` for each element of class ``jaxcb-place``,
in order, and makes links of these elements.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from ..text import MEANINGS, SIGNS, TONES

OUTPUT_TYPE = "application/vnd.jupyter-jaxcb.report.v1+json"


class Spot(NamedTuple):
    """What an element of class ``jaxcb-place`` is about."""

    file: str
    line: int
    source: str = ""  # the line, stripped; empty: unknown
    numbered: bool = True  # the element gets the number of the cell: ``[21] line 3``


class Output(NamedTuple):
    """HTML, and the lines that it names."""

    html: str
    spots: tuple[Spot, ...]


def output(parts: Iterable[str], spots: Iterable[Spot] = ()) -> Output:
    """Return `parts`, which are HTML, in the look of the host trace."""
    html = f'<div class="jaxcb-report"><style>{_style()}</style>{"".join(parts)}</div>'
    return Output(html, tuple(spots))


@functools.cache
def _style() -> str:
    path = importlib.resources.files(__name__.rpartition(".")[0]) / "report.css"
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"\s*([{};,])\s*", r"\1", " ".join(text.split()))
    return text.replace(": ", ":")  # a space before a colon belongs to a selector


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of HTML cells; titles that begin with ``>`` are of columns of numbers."""
    numbers = [' class="jaxcb-number"' if title.startswith(">") else "" for title in head]
    titles = "".join(
        f'<th scope="col"{css}>{escape(title.removeprefix(">"))}</th>'
        for title, css in zip(head, numbers, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{css}>{cell}</td>" for cell, css in zip(row, numbers, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def place(words: str) -> str:
    """Return the name of a line, or of the function there; its `Spot` must be in the output."""
    return f'<span class="jaxcb-place">{escape(words)}</span>'


def status(consequence: str, words: str) -> str:
    """Return a status with its sign, in its color."""
    return toned(TONES[consequence], f"{SIGNS[consequence]} {words}".rstrip())


def toned(tone: str, words: str) -> str:
    """Return `words` in the color of a tone; errors and warnings are bold without colors, too."""
    tag = "strong" if tone in ("error", "warning") else "span"
    return f'<{tag} class="jaxcb-tone-{tone}">{escape(words)}</{tag}>'


def term(name: str, words: str) -> str:
    """Return `words`, which use a word of the glossary, with its meaning as a tooltip."""
    title = f"{name.capitalize()}: {MEANINGS[name]}"
    return f'<abbr class="jaxcb-term" title="{escape(title)}">{escape(words)}</abbr>'


def advice(words: str) -> str:
    """Return what to do about what stands above it."""
    return f'<p class="jaxcb-advice">↳ <b>What to do:</b> {escape(words)}</p>'
