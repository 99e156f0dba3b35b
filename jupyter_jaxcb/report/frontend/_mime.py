"""Build the Jupyter MIME bundle of a recording.

Deterministic facts go into the data, times and threads into the metadata. nbval compares only the
data, so notebooks pass it without sanitizing, except for the HTML of a profile. Both have a list of
sites: the two parts of each `SiteView`.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import numpy as np

from ...recording import Compilation, Recording, SampleValues, Site, html, unnumbered
from ..profile import profile_to_html, to_text
from ..summary import (
    STOPPED_BY_YOU,
    Rows,
    call_words,
    full_words,
    is_stop,
    out_of_order,
)
from ..text import View, by_other_threads, time_split, to_html
from ..text import to_text as sites_to_text
from ._columns import (
    CallColumns,
    call_columns,
    not_finite_marks,
    rows_of,
    to_saved,
    variant_numbers,
)
from ._documents import CompilationView, FactsView, MeasuredView
from ._profile import profile_facts, proposals
from ._site_view import NO_MARKS, SCHEMA, Place, SiteView, finished

MIME_TYPE = f"application/vnd.jupyter-jaxcb.recording.v{SCHEMA}+json"
MAX_SAVED_CALLS = 20_000  # saved with a notebook; about 100 kB if no two are alike
MAX_PAGE_CALLS = 2_000_000  # in a page; `unpack.ts` accepts no more
_SAVED_UNIT_NS = 100
STARTED = "started in "  # before the cell, at the end of the name of a thread that it left running
_SAVED_RUNS = 100  # of calls of a site that returned NaN or infinity
_RUNS = 10_000


def to_mimebundle(
    recording: Recording,
    *,
    times: bool = False,
    values: bool = False,
    place: Place | None = None,
    name: str = "",
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data and metadata of the display of `recording`.

    Args:
        recording: the recording to show.
        times: include times in the plain text too (for a terminal, which saves nothing).
        values: include the sample values, which are then saved with the notebook.
        place: maps a file and a line to a notebook cell.
        name: the id under which the kernel can send the full recording while it runs.
    """
    kept = recording.calls[:MAX_SAVED_CALLS]
    shown = _Document(recording, kept, values, place, runs=_SAVED_RUNS, unit_ns=_SAVED_UNIT_NS)
    data = {
        "text/plain": (
            to_text(recording, values=values)  # of a terminal, which saves nothing
            if times
            else sites_to_text(shown.view, times=False, values=values)
        ),
        # Of a profile, which is about times, also those who have only the HTML see the times.
        "text/html": html(
            profile_to_html(recording),
            to_html(shown.view, values=values),
        ),
        MIME_TYPE: _brief(_facts(shown.view, shown.views, brief=True)),
    }
    return data, {MIME_TYPE: _brief({**shown.saved(brief=True), "id": name})}


def to_page(recording: Recording) -> dict[str, Any]:
    """Return everything that a page without a kernel shows, as JSON."""
    shown = _Document(recording, recording.calls[:MAX_PAGE_CALLS], values=True)
    return {
        "facts": _facts(shown.view, shown.views),
        "measured": {**shown.saved(), "id": ""},
    }


def to_sites(recording: Recording) -> dict[str, Any]:
    """Return what every display says about the call sites, as JSON for other programs."""
    view = View(recording)
    views = list(map(finished, view.sites))
    return {
        **_facts(view, views),
        "environment": dict(recording.environment),
        "sites": [view.to_json() for view in views],
    }


def to_message(
    recording: Recording, *, values: bool = True, place: Place | None = None, name: str = ""
) -> tuple[FactsView, MeasuredView, CallColumns]:
    """Return facts, measurements and every call, for a front end connected to the kernel.

    Args:
        recording: the recording to show.
        values: include the sample values.
        place: maps a file and a line to a notebook cell.
        name: the id of the recording's display, by which the front end recognizes the recording.
    """
    shown = _Document(recording, recording.calls, values, place)
    measured: MeasuredView = {
        **shown.measured(),
        "id": name,
        "calls": None,
        "calls_not_saved": 0,
    }
    return _facts(shown.view, shown.views), measured, shown.columns


class _Document:
    """What the front end gets of a recording, with some of its host calls: the first ones.

    Args:
        recording: the recording.
        calls: the host calls.
        values: include the sample values.
        place: maps a file and a line to a notebook cell.
        runs: the number of runs of calls of a site that returned NaN or infinity.
        unit_ns: see `call_columns`.
    """

    def __init__(
        self,
        recording: Recording,
        calls: np.ndarray,
        values: bool,
        place: Place | None = None,
        *,
        runs: int = _RUNS,
        unit_ns: int = 1,
    ) -> None:
        self._recording = recording
        self.view = View(unnumbered(recording))
        self.sites = self.view.sites
        self.columns = call_columns(calls, variant_numbers(recording, self.sites), unit_ns=unit_ns)
        self.views = self._views(calls, values, place, runs)

    def _views(
        self, calls: np.ndarray, values: bool, place: Place | None, runs: int
    ) -> list[SiteView]:
        numbered = Rows((site.site for site in self.sites), self._recording.where)
        marks = not_finite_marks(self._recording, calls, runs)
        samples: list[SampleValues] = [one for site in self.sites for one, _ in site.sample_values]
        rows = iter(rows_of(calls, samples) if values else ())
        proposed = proposals(self._recording)
        started = started_words(self._recording)
        return [
            finished(
                site,
                place=place,
                numbered=_if_different(numbered.where(site.site), site.where),
                started=started.get(site.site, ""),
                values=values,
                proposals=proposed.get(site.site, ()),
                sample_rows=islice(rows, len(site.sample_values)),
                marks=marks.get(site.site, NO_MARKS),
            )
            for site in self.sites
        ]

    def saved(self, *, brief: bool = False) -> MeasuredView:
        """Return `Measured` without the id, with the host calls."""
        return {
            **self.measured(brief=brief),
            "calls": to_saved(self.columns) if self.columns.rows else None,
            "calls_not_saved": len(self._recording) - self.columns.rows,
        }

    def measured(self, *, brief: bool = False) -> MeasuredView:
        """Return what changes from run to run, except the host calls."""
        recording, columns = self._recording, self.columns
        base_ns = columns.base_ns if columns.rows else None
        profile = profile_facts(recording, base_ns)
        measured: MeasuredView = {
            "environment": dict(recording.environment),
            "out_of_order": out_of_order(recording, self.sites),
            "by_worker": by_other_threads(recording),
            "compilations": [_compilation(one, base_ns) for one in recording.compilations],
            "threads": list(recording.threads),
            "wall_ns": recording.wall_ns,
            "headline": [list(part) for part in self.view.timed_headline],
            "time": time_split(recording, self.sites),
            "errors": [STOPPED_BY_YOU if is_stop(one) else one for one in recording.errors],
            "sites": [view.measured(brief=brief) for view in self.views],
        }
        if profile is not None:
            measured["profile"] = profile
        return measured


def started_words(recording: Recording) -> dict[Site, str]:
    """Say which calls of each site were made by threads that earlier cells started."""
    made: dict[Site, Counter[str]] = {}
    calls = recording.calls
    for thread, name in enumerate(recording.threads):
        _, started, cell = name.partition(f", {STARTED}")
        if started:
            own = np.bincount(calls["lowered"][calls["thread"] == thread])
            for number in np.flatnonzero(own).tolist():
                made.setdefault(recording.lowered[number].site, Counter())[cell] += int(own[number])
    return {
        site: ", ".join(f"{call_words(n)} on a thread {STARTED}{cell}" for cell, n in of.items())
        for site, of in made.items()
    }


def _if_different(text: str, other: str) -> str:
    return text if text != other else ""


def _brief(document: FactsView | MeasuredView) -> dict[str, Any]:
    """Leave out what is empty, zero or false, which would be most of a saved output."""
    return {name: value for name, value in document.items() if value or name == "sites"}


def _facts(view: View, views: list[SiteView], *, brief: bool = False) -> FactsView:
    return {
        "schema": SCHEMA,
        "headline": [list(part) for part in view.headline],
        "sites": [view.facts(brief=brief) for view in views],
        "full": full_words(view.recording),
        "ahead": view.recording.ahead,
        "not_observed": 0 if view.recording.ahead else view.recording.not_observed,
    }


def _compilation(one: Compilation, base_ns: int | None) -> CompilationView:
    began = one.end_ns - one.compile_ns - one.lower_ns  # XLA compiles right after JAX has lowered
    return {
        "program": one.program.name,
        "lower_ns": one.lower_ns,
        "compile_ns": one.compile_ns,
        # Counts from the first call, so usually negative. None: unknown, or there are no calls.
        "start_ns": began - base_ns if one.end_ns and base_ns is not None else None,
    }
