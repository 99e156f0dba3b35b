"""Select a part of what a recorder collects."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from .._facts import (
    OBSERVED,
    Frame,
    LoweredSite,
    Note,
    NoteKind,
    Outcome,
    Program,
    Reason,
    Site,
    Status,
)
from ._log import Sums

_GONE = (Status.UNUSED, Status.OPTIMIZED_AWAY)  # without calls to miss


class Mark(NamedTuple):
    """How much a recorder had collected at some moment; a window begins there."""

    calls: int
    lowered: int
    outcomes: int
    compilations: int
    sample_values: int
    counts: Sums
    observation: int  # how often observing JAX's own callbacks had begun or ended; odd: on
    at_ns: int  # on the recorder's clock


BEGINNING = Mark(0, 0, 0, 0, 0, {}, 1, 0)


def places_of(
    bound: Iterable[Site],
    found: Iterable[LoweredSite | Outcome],
    running: Iterable[tuple[Any, ...]],
) -> Iterator[Site | Frame]:
    """Return the places that a report may name: sites, their callers, stacks of running calls."""
    for site in {*bound, *(one.site for one in found)}:
        yield from (site, *site.callers)
    for *_, stack in running:
        yield from stack


def as_observed(
    outcomes: Sequence[Outcome],
    since: Mark,
    now: int,
    runs: Collection[Program],
    missed: Collection[Program],
) -> tuple[Outcome, ...]:
    """Limit the outcomes of JAX's own callbacks to what was observed.

    Without observation their outcomes are dropped, with partial observation they are unknown.

    Args:
        outcomes: the outcomes of programs that were compiled or run in a window.
        since: the mark at which the window begins.
        now: `Mark.observation` at the end of the window.
        runs: the programs of which it is known how often they ran.
        missed: those that ran without observation in the window.
    """
    if since.observation == now and now % 2:
        return tuple(outcomes)
    if since.observation == now:  # never observed
        return tuple(one for one in outcomes if not one.site.flavor.startswith(OBSERVED))
    return tuple(
        one if one.program in runs and one.program not in missed else _partly_observed(one)
        for one in outcomes
    )


def as_begun(
    outcomes: Sequence[Outcome],
    calls: np.ndarray,
    lowered: Sequence[LoweredSite],
    since: Mark,
    runs: Mapping[Program, int],
    unfinished: Set[Program],
    running: Iterable[LoweredSite],
) -> tuple[Outcome, ...]:
    """Limit the outcomes of programs that ran already when a window began, or run when it ends.

    Args:
        outcomes: the outcomes of programs that were compiled or run in a window.
        calls: its rows (`ROW`).
        lowered: the rows refer to these by index.
        since: the mark at which the window begins.
        runs: those that began in the window, where known.
        unfinished: programs of which a run may go on after the window.
        running: those with a call that runs when the window ends.
    """
    before = {lowered[n].program for n in calls["lowered"][calls["start_ns"] < since.at_ns]}
    entered = (*(lowered[n] for n in np.unique(calls["lowered"])), *running)
    called = {(one.program, one.site) for one in entered}
    in_part = before | unfinished | {p for p, _ in called if p is not None and runs.get(p) == 0}
    return tuple(
        _unknown(one, Reason.RUN_IN_PART)
        if one.program in in_part
        and (one.program, one.site) not in called
        and one.status not in _GONE
        else one
        for one in outcomes
    )


def _unknown(outcome: Outcome, reason: Reason) -> Outcome:
    return dataclasses.replace(
        outcome, status=Status.UNKNOWN, written=None, compiled=None, reason=reason
    )


def _partly_observed(outcome: Outcome) -> Outcome:
    """Return the outcome of a callback of JAX's own API, of which calls may be missing."""
    if not outcome.site.is_of_jax or outcome.status in _GONE:
        return outcome
    notes = (*outcome.notes, Note(NoteKind.PARTLY_OBSERVED))
    return dataclasses.replace(_unknown(outcome, Reason.PARTLY_OBSERVED), notes=notes)


def without_program(lost: Iterable[Site], moved: Iterable[Site]) -> Iterator[Outcome]:
    """Yield the outcomes of sites that no program has.

    Args:
        lost: traced, but in no program: a derivative in eager code dropped the call, or tracing
            failed.
        moved: called in eager code, though it was traced in a loop, see `Recorder.moved`.
    """
    none = Program("", "")
    for site in lost:
        yield Outcome(site, none, Status.UNKNOWN, compiled=0, reason=Reason.IN_NO_PROGRAM)
    for site in moved:
        yield Outcome(site, none, Status.UNKNOWN, reason=Reason.MAY_BE_HOISTED)


def renumbered(
    known: Sequence[LoweredSite],
    calls: np.ndarray,
    new: Iterable[LoweredSite],
    more: Collection[LoweredSite],
) -> tuple[list[LoweredSite], np.ndarray]:
    """Reduce the known sites to those that a part of the log needs, and renumber its calls.

    Args:
        known: all sites; `calls` refer to them by index.
        calls: rows of the log.
        new: sites that come first, whether called or not.
        more: other sites to include, whether called or not.

    Returns:
        The sites, and the calls with indices into these.
    """
    used = {known[number] for number in np.unique(calls["lowered"]).tolist()}
    used.update(more)
    lowered = list(dict.fromkeys([*new, *(fact for fact in known if fact in used), *more]))
    place = {fact: number for number, fact in enumerate(lowered)}
    calls = calls.copy()
    if len(calls):
        numbers = np.array([place.get(fact, 0) for fact in known], np.uint32)
        calls["lowered"] = numbers[calls["lowered"]]
    calls.flags.writeable = False
    return lowered, calls
