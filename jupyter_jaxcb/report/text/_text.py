"""Render a recording as plain text."""

from __future__ import annotations

from itertools import islice

from ...recording import Outcome, Recording, on_one_line
from ..summary import SiteSummary, causes_of, folded, out_of_order, reason_words, summarize
from ._headline import headline_words
from ._other_threads import by_other_threads
from ._variant import call_lines
from ._words import (
    MAX_SITES,
    aligned,
    few,
    full_words,
    left_out,
    remarks,
    sample_words,
    shorten,
    status_words,
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
    rows = [_rows(summary, times) for summary in listed]
    lines = [headline_words(recording, sites, times)]
    printed = iter(aligned([row for of_site in rows for row in of_site]))
    for of_site, summary in zip(rows, listed, strict=True):
        lines += [f"  {row}" for row in islice(printed, len(of_site))]
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
    return [
        [*(["", "", ""] if number else head), count, few(shapes), few(vmaps), *[time] * times]
        for number, (count, shapes, vmaps, time) in enumerate(call_lines(summary, times))
    ]
