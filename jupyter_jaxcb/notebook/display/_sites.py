"""What the sites of a session have done so far."""

from __future__ import annotations

import dataclasses

from ...recording import Recording, Site
from ...report import SiteSummary, summarize


class Sites:
    """Every site that was shown.

    Attributes:
        totals: over all cells; status and shapes are the newest ones.
        latest: as of the last cell in which they did anything, the newest last.
    """

    def __init__(self) -> None:
        self.totals: dict[Site, SiteSummary] = {}
        self.latest: dict[Site, SiteSummary] = {}

    def add(self, recording: Recording) -> None:
        """A cell has ended."""
        for summary in summarize(recording):
            known = self.totals.get(summary.site)
            self.totals[summary.site] = _added(known, summary) if known else summary
            self.latest.pop(summary.site, None)
            self.latest[summary.site] = summary


def _added(known: SiteSummary, new: SiteSummary) -> SiteSummary:
    return dataclasses.replace(
        new,
        calls=known.calls + new.calls,
        crossings=known.crossings + new.crossings,
        elided=known.elided + new.elided,
        host_ns=known.host_ns + new.host_ns,
        errors=tuple(dict.fromkeys([*known.errors, *new.errors])),
    )
