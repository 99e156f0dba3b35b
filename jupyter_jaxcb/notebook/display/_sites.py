"""Totals of all call sites of a session."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...recording import Recording, Site
from ...report import SiteSummary, finished, summarize

_MAX_VARIANTS = 100  # of a site; the front end says `100 or more shapes`


class Sites:
    """The summaries of all sites that were shown.

    Attributes:
        totals: summed over all cells, with the latest status and shapes.
        latest: the JSON of `SiteView` from the last cell that used the site, most recent last.
    """

    def __init__(self) -> None:
        self.totals: dict[Site, SiteSummary] = {}
        self.latest: dict[Site, dict[str, Any]] = {}

    def add(self, recording: Recording) -> list[SiteSummary]:
        """Add the recording of a cell; return its summaries."""
        summaries = summarize(recording)
        for summary in summaries:
            known = self.totals.get(summary.site)
            self.totals[summary.site] = _added(known, summary) if known else summary
            self.latest.pop(summary.site, None)
            few = dataclasses.replace(summary, shapes=summary.shapes[:_MAX_VARIANTS])
            self.latest[summary.site] = finished(few).to_json()
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
