"""Find unordered callbacks that did not run in program order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...recording import Program, Recording, Site, Status
from ._summary import SiteSummary
from ._words import counted

COMPARED = 40  # callbacks of one program that are compared with each other
_FLAVORS = ("io", "debug", "jax io", "jax debug")  # JAX does not remove calls of these flavors


def out_of_order(recording: Recording, summaries: list[SiteSummary]) -> list[str]:
    """Return a sentence for each callback that ran before one earlier in the program.

    Only io and debug callbacks that every run calls exactly once are compared, run by run. The
    order of unordered calls may change from run to run.
    """
    names = {summary.site: summary.place for summary in summaries}
    found = []
    programs = {
        program: places[:COMPARED]
        for program, places in _once_a_run(recording).items()
        if places[1:]
    }
    numbers = [number for places in programs.values() for number, _ in places]
    all_starts = _starts(recording.calls, numbers, len(recording.lowered))
    for places in programs.values():
        starts = {site: all_starts[number] for number, site in places}
        runs = {len(column) for column in starts.values()}
        if len(runs) != 1:
            continue
        (total,) = runs
        reported: set[Site] = set()
        for later, earlier in _pairs(list(starts)):
            swapped = 0 if later in reported else int((starts[later] < starts[earlier]).sum())
            if swapped:
                reported.add(later)
                found.append(
                    f"{names[later]} ran before {names[earlier]} in {swapped:,} of "
                    f"{counted(total, 'run')}; pass ordered=True to keep program order"
                )
    return found


def _once_a_run(recording: Recording) -> dict[Program, list[tuple[int, Site]]]:
    """Map each program to the sites that every run calls once, in program order.

    Each site comes with its index into `Recording.lowered`.
    """
    calls: dict[tuple[Program, Site], int | None] = {}
    for outcome in recording.outcomes:
        key = (outcome.program, outcome.site)
        sure = outcome.status is Status.KEPT and outcome.compiled == 1 and key not in calls
        calls[key] = 1 if sure else None
    found: dict[Program, list[tuple[int, int, Site]]] = {}
    for number, fact in enumerate(recording.lowered):
        if fact.program is None or fact.site.flavor not in _FLAVORS or fact.levels:
            continue
        if calls.get((fact.program, fact.site)) and fact.shard is None:
            found.setdefault(fact.program, []).append((fact.index, number, fact.site))
    return {
        program: [(number, site) for _, number, site in sorted(places, key=lambda p: p[0])]
        for program, places in found.items()
    }


def _pairs(sites: list[Site]) -> Iterator[tuple[Site, Site]]:
    """Pair each site with each site before it, the nearest first."""
    for place, later in enumerate(sites):
        for earlier in reversed(sites[:place]):
            yield later, earlier


def _starts(calls: np.ndarray, numbers: list[int], count: int) -> dict[int, np.ndarray]:
    """Return the sorted start times of the calls of each of `numbers`, all below `count`."""
    place = np.full(count, -1)
    place[numbers] = np.arange(len(numbers))
    whose = place[calls["lowered"]]
    starts, whose = calls["start_ns"][whose >= 0], whose[whose >= 0]
    starts = starts[np.lexsort((starts, whose))]
    ends = np.cumsum(np.bincount(whose, minlength=len(numbers)))
    return dict(zip(numbers, np.split(starts, ends[:-1]), strict=True)) if numbers else {}
