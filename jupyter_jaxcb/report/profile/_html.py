"""Render a profile as static HTML, for notebooks and pages without the front end."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from ...recording import Frame, PartKind, Recording, Site
from .. import text
from ..text import time_words
from ._advice import advice
from ._figures import Figures, headline, notes, share_words
from ._kinds import KINDS, count_words_of

_LEFT, _RIGHT = ' style="text-align:left"', ' style="text-align:right"'


def profile_to_html(
    recording: Recording, where: Callable[[Site | Frame], str] | None = None
) -> str:
    """Return the bar, the sentences and a table of the parts.

    Args:
        recording: the recording.
        where: names places, by default as `Recording.where`.

    Returns:
        HTML without scripts; empty if the recording has no profile.
    """
    figures = Figures.of(recording, where)
    if figures is None:
        return ""
    said = "".join(f"<li>{escape(one)}</li>" for one in advice(figures))
    quiet = "".join(f"<p><small>{escape(one)}</small></p>" for one in notes(figures))
    rows = "".join(_rows(figures, kind, ns) for kind, ns in figures.kinds)
    return (
        f'<section class="jaxcb-profile"><p><strong>{escape(headline(figures))}</strong></p>'
        f"{_bar(figures)}{f'<ul>{said}</ul>' if said else ''}<table>{rows}</table>{quiet}</section>"
    )


def to_html(recording: Recording, *, times: bool = False, values: bool = False) -> str:
    """As `to_text`, but HTML without scripts: a one-line summary that expands to the table."""
    profile = profile_to_html(recording) if times else ""
    return profile + text.to_html(recording, times=times, values=values)


def _bar(figures: Figures) -> str:
    segments = "".join(
        f'<span title="{escape(KINDS[kind].words)} {time_words(ns)}" '
        f'style="background:{KINDS[kind].color};width:{100 * figures.share(ns):.3f}%"></span>'
        for kind, ns in figures.kinds
    )
    return f'<div style="display:flex;height:1.5em;max-width:60em">{segments}</div>'


def _rows(figures: Figures, kind: PartKind, ns: int) -> str:
    swatch = f'<span style="color:{KINDS[kind].color}">■</span>'
    rows = [_row(f"{swatch} <strong>{escape(KINDS[kind].words)}</strong>", "", ns, figures, "")]
    for part in figures.parts(kind):
        if part.name or part.place:
            name = f"&emsp;<code>{escape(part.name)}</code>"
            rows.append(
                _row(name, figures.where(part), part.wall_ns, figures, count_words_of(part))
            )
    return "".join(rows)


def _row(name: str, where: str, ns: int, figures: Figures, count: str) -> str:
    amounts = f"<td{_RIGHT}>{time_words(ns)}</td><td{_RIGHT}>{share_words(figures.share(ns))}</td>"
    return (
        f"<tr><td{_LEFT}>{name}</td><td{_LEFT}>{escape(where)}</td>{amounts}"
        f"<td{_LEFT}>{count}</td></tr>"
    )
