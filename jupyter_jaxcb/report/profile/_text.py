"""Render a recording as plain text, with its profile if it has one."""

from __future__ import annotations

from ...recording import PartKind, Recording, on_one_line
from .. import text
from ..summary import aligned, time_words
from ._advice import advice
from ._figures import Figures, headline, notes, share_words, short_name
from ._kinds import KINDS, count_words_of

_BAR = 72  # characters


def _profile_to_text(recording: Recording) -> str:
    """Return the bar, a table of the parts, and what they mean.

    Returns:
        Text without a final newline; empty if the recording has no profile.
    """
    figures = Figures.of(recording)
    if figures is None:
        return ""
    rows = [row for kind, ns in figures.kinds for row in _rows(figures, kind, ns)]
    table = (f"  {line}" for line in aligned(rows, right=(2, 3)))
    lines = (headline(figures), _bar(figures), *table, *advice(figures), *notes(figures))
    return "\n".join(map(on_one_line, lines))


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
    profile = _profile_to_text(recording) if times else ""
    sites = text.to_text(recording, times=times, values=values)
    return "\n\n".join(filter(None, (profile, sites)))


def _bar(figures: Figures) -> str:
    bar, passed = "", 0
    for kind, ns in figures.kinds:
        passed += ns
        bar += KINDS[kind].fill * (round(_BAR * figures.share(passed)) - len(bar))
    return bar


def _rows(figures: Figures, kind: PartKind, ns: int) -> list[list[str]]:
    rows = [[f"{KINDS[kind].fill} {KINDS[kind].words}", "", *_amounts(figures, ns), ""]]
    for part in figures.parts(kind):
        if part.name or part.place:
            name, amounts = short_name(part), _amounts(figures, part.wall_ns)
            rows.append([f"    {name}", figures.where(part), *amounts, count_words_of(part)])
    return rows


def _amounts(figures: Figures, ns: int) -> tuple[str, str]:
    return time_words(ns), share_words(figures.share(ns))
