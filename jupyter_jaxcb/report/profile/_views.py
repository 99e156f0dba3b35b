"""Lay out a profile as text, HTML and Markdown, before the call sites: the same rows in each."""

from __future__ import annotations

from collections.abc import Iterator

from ...recording import Html, Part, Recording, element, html, on_one_line
from .. import text
from ..summary import aligned, time_words
from ..text import code_span, plain_words, table
from ._advice import advice
from ._figures import KINDS, Figures, Kind, count_words, headline, notes, share_words, short_name

_BAR = 72  # characters
_HEAD = ("part", "where", "time", "share", "count")
_LEFT, _RIGHT = "text-align:left", "text-align:right"


def _rows(figures: Figures) -> Iterator[tuple[Kind, Part | None, list[str]]]:
    """Yield a row for each kind, without a part, and for its parts: where, time, share, count."""
    for kind, total in figures.kinds:
        shown = [part for part in figures.parts(kind) if part.name or part.place]
        for part in (None, *shown):
            ns = total if part is None else part.wall_ns
            where, count = ("", "") if part is None else (figures.where(part), count_words(part))
            amounts = time_words(ns), share_words(figures.share(ns))
            yield KINDS[kind], part, [where, *amounts, count]


def to_text(recording: Recording, *, times: bool = True, values: bool = False) -> str:
    """Return the profile, if there is one, then the summary line and the table of call sites.

    Args:
        recording: the recording to report.
        times: include the profile, and the time spent in host functions. Without it, equal programs
            give equal text.
        values: include the sample values.

    Returns:
        Text without a final newline; empty when there is nothing to show.
    """
    sites = text.to_text(recording, times=times, values=values)
    figures = Figures.of(recording) if times else None
    if figures is None:
        return sites
    bar, passed = "", 0
    for kind, ns in figures.kinds:
        passed += ns
        bar += KINDS[kind].fill * (round(_BAR * figures.share(passed)) - len(bar))
    rows = [
        [f"    {short_name(part)}" if part else f"{kind.fill} {kind.words}", *cells]
        for kind, part, cells in _rows(figures)
    ]
    parts = (f"  {line}" for line in aligned(rows, right=(2, 3)))
    lines = (headline(figures), bar, *parts, *advice(figures), *notes(figures))
    return "\n\n".join(filter(None, ("\n".join(map(on_one_line, lines)), sites)))


def to_markdown(recording: Recording) -> str:
    """As `to_text`, but Markdown, with times: the profile, and then the table of call sites."""
    sites, figures = text.to_markdown(recording), Figures.of(recording)
    if figures is None:
        return sites
    rows = [
        [code_span(short_name(part)) if part else f"**{kind.words}**", *map(plain_words, cells)]
        for kind, part, cells in _rows(figures)
    ]
    said = "\n".join(f"* {plain_words(line)}" for line in (*advice(figures), *notes(figures)))
    parts = plain_words(headline(figures)), table(_HEAD, rows), said, sites
    return "\n\n".join(filter(None, parts))


def to_html(
    recording: Recording, *, times: bool = False, values: bool = False, is_open: bool = False
) -> Html:
    """As `to_text`, but HTML without scripts: a one-line summary that expands to the table."""
    profile = profile_to_html(recording) if times else None
    return html(profile, text.to_html(recording, times=times, values=values, is_open=is_open))


def profile_to_html(recording: Recording) -> Html:
    """Return the bar, the sentences and a table of the parts.

    Returns:
        HTML without scripts; empty if the recording has no profile.
    """
    figures = Figures.of(recording)
    if figures is None:
        return html()
    segments = [
        element(
            "span",
            title=f"{KINDS[kind].words} {time_words(ns)}",
            style=f"background:{KINDS[kind].color};width:{100 * figures.share(ns):.3f}%",
        )
        for kind, ns in figures.kinds
    ]
    said = [element("li", sentence) for sentence in advice(figures)]
    rows = [
        element(
            "tr",
            element("td", _name_in_html(kind, part), style=_LEFT),
            *(
                element("td", cell, style=style)
                for cell, style in zip(cells, (_LEFT, _RIGHT, _RIGHT, _LEFT), strict=True)
            ),
        )
        for kind, part, cells in _rows(figures)
    ]
    return element(
        "section",
        element("p", element("strong", headline(figures))),
        element("div", *segments, style="display:flex;height:1.5em;max-width:60em"),
        element("ul", *said) if said else None,
        element("table", *rows),
        *(element("p", element("small", note)) for note in notes(figures)),
        class_="jaxcb-profile",
    )


def _name_in_html(kind: Kind, part: Part | None) -> Html:
    if part is None:
        swatch = element("span", "■", style=f"color:{kind.color}")
        return html(swatch, " ", element("strong", kind.words))
    return html("\u2003", element("code", part.name))
