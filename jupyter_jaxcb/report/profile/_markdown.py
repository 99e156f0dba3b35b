"""Render a recording as Markdown, for an issue or a chat, with its profile if it has one."""

from __future__ import annotations

from ...recording import PartKind, Recording
from .. import text
from ..summary import time_words
from ..text import code_span, plain_words, table
from ._advice import advice
from ._figures import Figures, headline, notes, share_words, short_name
from ._kinds import KINDS, count_words_of

_HEAD = ("part", "where", "time", "share", "count")


def _profile_to_markdown(recording: Recording) -> str:
    """Return the headline, the bar as a table of its parts, and the sentences below it.

    Returns:
        Text without a final newline; empty if the recording has no profile.
    """
    figures = Figures.of(recording)
    if figures is None:
        return ""
    rows = [row for kind, ns in figures.kinds for row in _rows(figures, kind, ns)]
    sentences = [f"* {plain_words(one)}" for one in (*advice(figures), *notes(figures))]
    words = plain_words(headline(figures))
    return "\n\n".join([words, table(_HEAD, rows), "\n".join(sentences)])


def to_markdown(recording: Recording) -> str:
    """As `to_text`, but Markdown, with times: the profile, and then the table of call sites."""
    parts = (_profile_to_markdown(recording), text.to_markdown(recording))
    return "\n\n".join(filter(None, parts))


def _rows(figures: Figures, kind: PartKind, ns: int) -> list[list[str]]:
    """Return the row of a kind, and the rows of its parts."""
    rows = [[f"**{KINDS[kind].words}**", "", *_amounts(figures, ns), ""]]
    for part in figures.parts(kind):
        if part.name or part.place:
            name, where = code_span(short_name(part)), plain_words(figures.where(part))
            rows.append([name, where, *_amounts(figures, part.wall_ns), count_words_of(part)])
    return rows


def _amounts(figures: Figures, ns: int) -> tuple[str, str]:
    return time_words(ns), plain_words(share_words(figures.share(ns)))
