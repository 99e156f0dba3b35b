"""Render a recording as plain text."""

from __future__ import annotations

from ...recording import Outcome, Recording, on_one_line
from ..summary import SiteSummary, causes_of, folded, out_of_order, reason_words, summarize
from ._headline import headline_words
from ._other_threads import by_other_threads
from ._words import (
    MAX_SITES,
    aligned,
    count_words,
    few,
    full_words,
    left_out,
    one_shape,
    remarks,
    rows_of,
    sample_words,
    shapes_in_words,
    shorten,
    status_words,
    time_words,
    variant_words,
)


def to_text(recording: Recording, *, times: bool = True, values: bool = False) -> str:
    """Return a summary line for all host functions, then a table of call sites.

    Args:
        recording: the recording to report.
        times: include the time spent in host functions. Without it, equal programs give equal text.
        values: include the sample values.

    Returns:
        Text without a final newline; empty when nothing was called, compiled or elided.
    """
    sites = folded(recording, summarize(recording))
    return sites_to_text(recording, sites, times=times, values=values)


def sites_to_text(
    recording: Recording, sites: list[SiteSummary], *, times: bool, values: bool
) -> str:
    """As `to_text`, for a recording whose `sites` are already summarized."""
    if not sites:
        return ""
    listed = sites[:MAX_SITES]
    rows = [row for summary in listed for row in _rows(summary, times)]
    lines = [headline_words(recording, sites, times)]
    for row, summary in zip(aligned(rows), _owners(listed), strict=True):
        lines.append(f"  {row}")
        if summary is not None:
            lines += [f"      {remark}" for remark in remarks(summary, times)]
            sample_values = summary.sample_values if values else ()
            lines += [f"      {sample_words(*sample)}" for sample in sample_values]
    if left_out(sites):
        lines.append(f"  {left_out(sites)}")
    if full_words(recording):
        lines.append(f"  {full_words(recording)}")
    if times:
        about = (*by_other_threads(recording), *out_of_order(recording, sites))
        lines += [f"  {line}" for line in about]
    return "\n".join(map(on_one_line, lines))


def outcome_to_text(outcome: Outcome, where: str = "") -> str:
    """Return ``bessel, line 3: unused, nothing uses its result ...``.

    Args:
        outcome: what one compiled program made of one bind.
        where: the place of the call site; `Site.where` by default.
    """
    site = outcome.site
    reason = reason_words(causes_of(outcome))
    words = ", ".join(filter(None, (outcome.status.words, reason)))
    return on_one_line(f"{site.function}, {where or site.where}: {words}")


def _rows(summary: SiteSummary, times: bool) -> list[list[str]]:
    """Return one row for each variant of the call site, and at least one."""
    head = [summary.where, shorten(summary.source), status_words(summary)]
    said = shapes_in_words(summary.shapes)
    words = dict(zip(summary.shapes, said, strict=True))
    rows = []
    for shapes in rows_of(summary):
        of = shapes or summary
        rows.append(
            [
                *(["", "", ""] if rows else head),
                "" if rows and summary.ahead else count_words(summary, shapes),
                few(words[shapes]) if shapes else one_shape(said),
                few(variant_words(shapes)) if shapes else "",
                *([time_words(of.host_ns) if of.calls else ""] * times),
            ]
        )
    return rows


def _owners(sites: list[SiteSummary]) -> list[SiteSummary | None]:
    """Return, for each row, the site whose notes follow it: only a site's last row has one."""
    owners: list[SiteSummary | None] = []
    for summary in sites:
        owners += [None] * (len(rows_of(summary)) - 1) + [summary]
    return owners
