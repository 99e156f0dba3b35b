"""Render a recording as plain text."""

from __future__ import annotations

from itertools import islice

from ...recording import Outcome, Recording, on_one_line
from ..summary import (
    MAX_SITES,
    SiteSummary,
    aligned,
    causes_of,
    few,
    full_words,
    left_out,
    out_of_order,
    reason_words,
    shorten,
)
from ._headline import View, view
from ._other_threads import by_other_threads


def to_text(recording: Recording | View, *, times: bool = True, values: bool = False) -> str:
    """Return a summary line for all host functions, then a table of call sites.

    Args:
        recording: the recording to report.
        times: include the time spent in host functions. Without it, equal programs give equal text.
        values: include the sample values.

    Returns:
        Text without a final newline; empty when nothing was called, compiled or elided.
    """
    shown = view(recording)
    recording, sites = shown.recording, shown.sites
    if not sites:
        return shown.headline_words(times=False)
    listed = sites[:MAX_SITES]
    rows = [_rows(summary, times) for summary in listed]
    lines = [shown.headline_words(times)]
    printed = iter(aligned([row for of_site in rows for row in of_site]))
    for of_site, summary in zip(rows, listed, strict=True):
        lines += [f"  {row}" for row in islice(printed, len(of_site))]
        lines += [f"      {remark}" for remark in summary.remarks(times)]
        lines += [f"      {sample}" for sample in summary.samples if values]
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
    head = [summary.where, shorten(summary.source), summary.status_words]
    return [
        [*(["", "", ""] if number else head), count, few(shapes), few(vmaps), *[time] * times]
        for number, (count, shapes, vmaps, time) in enumerate(summary.lines(times))
    ]
