"""Render a profile as static HTML, for notebooks and pages without the front end."""

from __future__ import annotations

from collections.abc import Callable

from ...recording import Frame, Html, PartKind, Recording, Site, element, html
from .. import text
from ..summary import time_words
from ._advice import advice
from ._figures import Figures, headline, notes, share_words
from ._kinds import KINDS, count_words_of

_LEFT, _RIGHT = "text-align:left", "text-align:right"


def profile_to_html(
    recording: Recording, where: Callable[[Site | Frame], str] | None = None
) -> Html:
    """Return the bar, the sentences and a table of the parts.

    Args:
        recording: the recording.
        where: names places, by default as `Recording.where`.

    Returns:
        HTML without scripts; empty if the recording has no profile.
    """
    figures = Figures.of(recording, where)
    if figures is None:
        return html()
    said = [element("li", one) for one in advice(figures)]
    return element(
        "section",
        element("p", element("strong", headline(figures))),
        _bar(figures),
        element("ul", *said) if said else None,
        element("table", *(row for kind, ns in figures.kinds for row in _rows(figures, kind, ns))),
        *(element("p", element("small", one)) for one in notes(figures)),
        class_="jaxcb-profile",
    )


def to_html(
    recording: Recording, *, times: bool = False, values: bool = False, is_open: bool = False
) -> Html:
    """As `to_text`, but HTML without scripts: a one-line summary that expands to the table."""
    profile = profile_to_html(recording) if times else None
    return html(profile, text.to_html(recording, times=times, values=values, is_open=is_open))


def _bar(figures: Figures) -> Html:
    segments = (
        element(
            "span",
            title=f"{KINDS[kind].words} {time_words(ns)}",
            style=f"background:{KINDS[kind].color};width:{100 * figures.share(ns):.3f}%",
        )
        for kind, ns in figures.kinds
    )
    return element("div", *segments, style="display:flex;height:1.5em;max-width:60em")


def _rows(figures: Figures, kind: PartKind, ns: int) -> list[Html]:
    swatch = element("span", "■", style=f"color:{KINDS[kind].color}")
    name = html(swatch, " ", element("strong", KINDS[kind].words))
    rows = [_row(name, "", ns, figures, "")]
    for part in figures.parts(kind):
        if part.name or part.place:
            name = html("\u2003", element("code", part.name))
            count = count_words_of(part)
            rows.append(_row(name, figures.where(part), part.wall_ns, figures, count))
    return rows


def _row(name: Html, where: str, ns: int, figures: Figures, count: str) -> Html:
    amounts = time_words(ns), share_words(figures.share(ns))
    cells = [(name, _LEFT), (where, _LEFT), *((one, _RIGHT) for one in amounts), (count, _LEFT)]
    return element("tr", *(element("td", cell, style=style) for cell, style in cells))
