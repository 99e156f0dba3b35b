"""Totals of all call sites of a session."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...recording import Recording, Site
from ...report import SiteSummary, finished, folded, started_words, summarize

_MAX_VARIANTS = 100  # of a site; the front end says `100 or more shapes`


class Sites:
    """The summaries of all sites that were shown.

    Attributes:
        totals: summed over all cells, with the latest status and shapes.
        latest: the JSON of `SiteView` from the last cell that used the site, most recent last.
        runs: the number of that cell; 0: unknown.
    """

    def __init__(self) -> None:
        self.totals: dict[Site, SiteSummary] = {}
        self.latest: dict[Site, dict[str, Any]] = {}
        self.runs: dict[Site, int] = {}

    def add(self, recording: Recording, number: int = 0) -> list[SiteSummary]:
        """Add the recording of the cell with this number; return its summaries."""
        summaries = folded(recording, summarize(recording))
        started = started_words(recording)
        for summary in summaries:
            known = self.totals.get(summary.site)
            self.totals[summary.site] = _added(known, summary) if known else summary
            self.latest.pop(summary.site, None)
            few = dataclasses.replace(summary, shapes=summary.shapes[:_MAX_VARIANTS])
            view = finished(few, started=started.get(summary.site, ""))
            self.latest[summary.site] = view.to_json()
            self.runs[summary.site] = number
        return summaries


def _added(known: SiteSummary, new: SiteSummary) -> SiteSummary:
    return dataclasses.replace(
        new,
        calls=known.calls + new.calls,
        crossings=known.crossings + new.crossings,
        elided=known.elided + new.elided,
        host_ns=known.host_ns + new.host_ns,
        not_finite_calls=new.not_finite_calls.plus(known.not_finite_calls, known.calls),
        errors=tuple(dict.fromkeys([*known.errors, *new.errors])),
    )
