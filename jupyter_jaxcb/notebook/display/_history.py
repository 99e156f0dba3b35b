"""Keep a few figures of the last runs of each cell, so that its runs can be compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ...recording import Recording
from ...report import RunSiteView, RunsView, SiteKeyView, SiteSummary, percentiles_95

MOST_RUNS = 20  # of a cell
MOST_CODE = 20_000  # characters of a cell; the code of a longer one is not kept
_MOST_CELLS = 200
_MOST_SITES = 200  # of a run

_Figures = tuple[str, int, int, int]  # of `RunSiteView`, without the index of its key


class _Run(NamedTuple):
    name: str  # the id of its recording, which the metadata of its output has
    number: int  # of the execution, as in the prompt
    code: str | None  # of the cell
    sites: tuple[tuple[SiteKeyView, _Figures], ...]


class History:
    """The last runs of the cells of a session.

    They are not in the metadata of outputs, so saved notebooks do not grow; a view asks for them.
    """

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], deque[_Run]] = {}  # the cell that ran last is last

    def add(
        self,
        cell: str,
        place: int,
        name: str,
        number: int,
        code: str,
        recording: Recording,
        sites: Sequence[SiteSummary],
    ) -> None:
        """Add a run.

        Args:
            cell: the front end's id of the cell.
            place: which of the host traces of the cell.
            name: the id of the recording.
            number: of the execution.
            code: of the cell.
            recording: the recording.
            sites: its summaries.
        """
        runs = self._runs.pop((cell, place), deque(maxlen=MOST_RUNS))
        kept = code if len(code) <= MOST_CODE else None
        # Runs of the same code share it.
        kept = next((run.code for run in runs if run.code == kept), kept)
        runs.append(_Run(name, number, kept, _figures(recording, sites[:_MOST_SITES])))
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


def _figures(
    recording: Recording, sites: Sequence[SiteSummary]
) -> tuple[tuple[SiteKeyView, _Figures], ...]:
    p95 = percentiles_95(recording)
    return tuple(
        (
            SiteKeyView(one.site.function, one.site.flavor, one.where, one.site.source),
            (one.consequence, one.calls, one.host_ns, p95.get(one.site, 0)),
        )
        for one in sites
    )


def _to_json(runs: list[_Run]) -> RunsView:
    """Return runs as JSON, with each site and each code that they have in common once."""
    keys = dict.fromkeys(key for run in runs for key, _ in run.sites)
    places = {key: place for place, key in enumerate(keys)}
    codes = [*dict.fromkeys(run.code for run in runs if run.code is not None)]
    return {
        "sites": [vars(key) for key in keys],
        "codes": codes,
        "runs": [
            {
                "id": run.name,
                "number": run.number,
                "code": None if run.code is None else codes.index(run.code),
                "sites": [RunSiteView(places[key], *figures) for key, figures in run.sites],
            }
            for run in runs
        ],
    }
