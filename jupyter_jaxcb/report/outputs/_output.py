"""The markup of outputs, which reads well without the style sheet and without links, too.

The data of an output is the same in every run, so it has no ids and numbers of cells. JupyterLab's
renderer gets them from the metadata, which has a `Spot` for each element of class ``jaxcb-place``,
in order, and makes links of these elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...recording import Html, compact_css, element
from ..summary import MEANINGS, SIGNS, TONES

OUTPUT_TYPE = "application/vnd.jupyter-jaxcb.report.v1+json"


class Spot(NamedTuple):
    """What an element of class ``jaxcb-place`` is about."""

    file: str
    line: int
    source: str = ""  # the line, stripped; empty: unknown
    numbered: bool = True  # the element gets the number of the cell: ``[21] line 3``


class Output(NamedTuple):
    """HTML, and the lines that it names."""

    html: Html
    spots: tuple[Spot, ...]


def output(parts: Iterable[Html], spots: Iterable[Spot] = ()) -> Output:
    """Return `parts` in the look of the host trace."""
    style = element("style", compact_css(__name__, "report.css"))
    html = element("div", style, *parts, class_="jaxcb-report")
    return Output(html, tuple(spots))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Return a table of text or `Html`; titles that begin with ``>`` are of columns of numbers."""
    css = ["jaxcb-number" if title.startswith(">") else None for title in head]
    titles = (
        element("th", title.removeprefix(">"), scope="col", class_=one)
        for title, one in zip(head, css, strict=True)
    )
    body = (
        element("tr", *(element("td", cell, class_=o) for cell, o in zip(row, css, strict=True)))
        for row in rows
    )
    return element("table", element("thead", element("tr", *titles)), element("tbody", *body))


def place(words: str) -> Html:
    """Return the name of a line, or of the function there; its `Spot` must be in the output."""
    return element("span", words, class_="jaxcb-place")


def status(consequence: str, words: str) -> Html:
    """Return a status with its sign, in its color."""
    return toned(TONES[consequence], f"{SIGNS[consequence]} {words}".rstrip())


def toned(tone: str, words: str) -> Html:
    """Return `words` in the color of a tone; errors and warnings are bold without colors, too."""
    tag = "strong" if tone in ("error", "warning") else "span"
    return element(tag, words, class_=f"jaxcb-tone-{tone}")


def term(name: str, words: str) -> Html:
    """Return `words`, which use a word of the glossary, with its meaning as a tooltip."""
    title = f"{name.capitalize()}: {MEANINGS[name]}"
    return element("abbr", words, class_="jaxcb-term", title=title)


def advice(words: str) -> Html:
    """Return what to do about what stands above it."""
    return element("p", "↳ ", element("b", "What to do:"), f" {words}", class_="jaxcb-advice")
