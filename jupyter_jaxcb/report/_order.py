"""Unordered callbacks that ran in another order than the program has them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..recording import Fate, Program, Recording, Site
from ._summary import SiteSummary

COMPARED = 40  # callbacks of one program


def out_of_order(recording: Recording, summaries: list[SiteSummary]) -> list[str]:
    """A sentence for each callback that ran before one that comes earlier in the program.

    Compared are io and debug callbacks that every run calls once, run by run. The order of
    unordered calls may change from run to run.
    """
    names = {summary.site: summary.where for summary in summaries}
    found = []
    for places in _once_a_run(recording).values():
        starts = {site: _starts(recording, number) for number, site in places[:COMPARED]}
        runs = {len(column) for column in starts.values()}
        if len(runs) != 1:
            continue
        (total,) = runs
        told: set[Site] = set()
        for later, earlier in _pairs(list(starts)):
            swapped = int((starts[later] < starts[earlier]).sum())
            if swapped and later not in told:
                told.add(later)
                found.append(
                    f"{names[later]} ran before {names[earlier]} in {swapped:,} of {total:,} "
                    f"run{'' if total == 1 else 's'}; ordered=True keeps program order"
                )
    return found


def _once_a_run(recording: Recording) -> dict[Program, list[tuple[int, Site]]]:
    """By program, in its order, the sites that each of its runs calls once, and their numbers."""
    calls: dict[tuple[Program, Site], int | None] = {}
    for outcome in recording.outcomes:
        key = (outcome.program, outcome.site)
        sure = outcome.fate is Fate.LIVE and outcome.compiled == 1 and key not in calls
        calls[key] = 1 if sure else None
    found: dict[Program, list[tuple[int, int, Site]]] = {}
    for number, fact in enumerate(recording.lowered):
        if fact.program is None or fact.site.flavor not in ("io", "debug") or fact.levels:
            continue
        if calls.get((fact.program, fact.site)) and fact.shard is None:
            found.setdefault(fact.program, []).append((fact.index, number, fact.site))
    return {
        program: [(number, site) for _, number, site in sorted(places, key=lambda p: p[0])]
        for program, places in found.items()
    }


def _pairs(sites: list[Site]) -> Iterator[tuple[Site, Site]]:
    """Each later one with each earlier one, the nearest first."""
    for place, later in enumerate(sites):
        for earlier in reversed(sites[:place]):
            yield later, earlier


def _starts(recording: Recording, number: int) -> np.ndarray:
    return np.sort(recording.calls["start_ns"][recording.calls["lowered"] == number])
