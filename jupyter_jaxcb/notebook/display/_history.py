"""Keep a few figures of the last runs of each cell, so that its runs can be compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from ...report import RunSiteView, RunsView, SiteKeyView, SiteSummary

MOST_RUNS = 20  # of a cell
_MOST_CELLS = 200
_MOST_SITES = 200  # of a run


_Figures = tuple[str, int, int, int]  # of `RunSiteView`, without the index of its key


class _Run(NamedTuple):
    name: str  # the id of its recording, which the metadata of its output has
    number: int  # of the execution, as in the prompt
    sites: tuple[tuple[SiteKeyView, _Figures], ...]


class History:
    """The last runs of the cells of a session.

    They are not in the metadata of outputs, so saved notebooks do not grow; a view asks for them.
    """

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], deque[_Run]] = {}  # the cell that ran last is last

    def add(
        self, cell: str, place: int, name: str, number: int, sites: Iterable[SiteSummary]
    ) -> None:
        """Add a run.

        Args:
            cell: the front end's id of the cell.
            place: which of the host traces of the cell.
            name: the id of the recording.
            number: of the execution.
            sites: the summaries of the recording.
        """
        runs = self._runs.pop((cell, place), deque(maxlen=MOST_RUNS))
        runs.append(_Run(name, number, tuple(map(_site_run, list(sites)[:_MOST_SITES]))))
        self._runs[cell, place] = runs
        while len(self._runs) > _MOST_CELLS:
            self._runs.pop(next(iter(self._runs)))

    def to_json(self, name: str) -> RunsView | None:
        """Return a run and those of its cell before it, oldest first; None: it is not known."""
        for runs in self._runs.values():
            names = [run.name for run in runs]
            if name in names:
                return _to_json(list(runs)[: names.index(name) + 1])
        return None


def _site_run(summary: SiteSummary) -> tuple[SiteKeyView, _Figures]:
    site = summary.site
    key = SiteKeyView(site.function, site.flavor, summary.where, site.source)
    return key, (summary.consequence, summary.calls, summary.host_ns, summary.elided)


def _to_json(runs: list[_Run]) -> RunsView:
    """Return runs as JSON, with each site that they have in common once."""
    keys = dict.fromkeys(key for run in runs for key, _ in run.sites)
    places = {key: place for place, key in enumerate(keys)}
    return {
        "sites": [vars(key) for key in keys],
        "runs": [
            {
                "id": run.name,
                "number": run.number,
                "sites": [RunSiteView(places[key], *figures) for key, figures in run.sites],
            }
            for run in runs
        ],
    }
