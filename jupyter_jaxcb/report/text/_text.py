"""A recording as plain text."""

from __future__ import annotations

from ...recording import Outcome, Recording
from ..summary import SiteSummary, causes_of, out_of_order, reason_words, summarize
from ._words import (
    MAX_SITES,
    count_words,
    full_words,
    headline,
    left_out,
    note,
    sample_words,
    shape_words,
    shorten,
    status_words,
    time_words,
    variant_words,
)
from ._workers import by_worker


def to_text(recording: Recording, *, times: bool = True, values: bool = False) -> str:
    """One line a host function, then a table of sites.

    Args:
        recording: what to report.
        times: with the time spent in host functions; without, equal programs give equal text.
        values: with what the first calls of each site were given and answered.

    Returns:
        Text without a final newline; empty when nothing was called, compiled or elided.
    """
    return sites_to_text(recording, summarize(recording), times=times, values=values)


def sites_to_text(
    recording: Recording, sites: list[SiteSummary], *, times: bool, values: bool
) -> str:
    """`to_text` of a recording whose `sites` are summarized already."""
    if not sites:
        return ""
    listed = sites[:MAX_SITES]
    rows = [row for summary in listed for row in _rows(summary, times)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [headline(sites, times)]
    for row, summary in zip(rows, _owners(listed), strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(("  " + "  ".join(cells)).rstrip())
        if summary is not None:
            remarks = filter(None, (note(summary), *summary.notes))
            lines += [f"      {remark}" for remark in remarks]
            sample_values = summary.sample_values if values else ()
            lines += [f"      {sample_words(*sample)}" for sample in sample_values]
    if left_out(sites):
        lines.append(f"  {left_out(sites)}")
    if full_words(recording):
        lines.append(f"  {full_words(recording)}")
    if times:
        about = (*by_worker(recording), *out_of_order(recording, sites))
        lines += [f"  {line}" for line in about]
    return "\n".join(lines)


def outcome_to_text(outcome: Outcome, where: str = "") -> str:
    """``bessel, line 3: unused, its result is never used ...``.

    Args:
        outcome: what a program made of a bind.
        where: its site is; as the site says, if left out.
    """
    site = outcome.site
    reason = reason_words(causes_of(outcome))
    words = ", ".join(filter(None, (outcome.status.words, reason)))
    return f"{site.function}, {where or site.where}: {words}"


def _rows(summary: SiteSummary, times: bool) -> list[list[str]]:
    """One row for each variant a site reached the host; at least one."""
    head = [summary.where, shorten(summary.source), status_words(summary.status)]
    rows = []
    for place, shapes in enumerate(summary.shapes or (None,)):
        first = place == 0
        calls = count_words(summary, shapes) if first or not summary.ahead else ""
        rows.append(
            [
                *(head if first else ["", "", ""]),
                calls,
                shape_words(shapes, summary.shapes) if shapes else "",
                variant_words(shapes) if shapes else "",
                *([time_words(summary.host_ns) if first and summary.calls else ""] * times),
            ]
        )
    return rows


def _owners(sites: list[SiteSummary]) -> list[SiteSummary | None]:
    """For each row: the site whose note comes below it, at the site's last row."""
    owners: list[SiteSummary | None] = []
    for summary in sites:
        owners += [None] * (max(len(summary.shapes), 1) - 1) + [summary]
    return owners
