"""Select a part of what a recorder collects."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .._facts import (
    OBSERVED,
    LoweredSite,
    Note,
    NoteKind,
    NotKept,
    Outcome,
    Program,
    Reason,
    Site,
    Status,
)
from .._rule import Rule


class Mark(NamedTuple):
    """How much a recorder had collected at some moment; a window begins there."""

    calls: int
    bound: Mapping[Site, int]
    lowered: int
    outcomes: int
    runs: Mapping[Program, int]
    not_kept: Mapping[tuple[int, int], NotKept]  # from `CallLog.not_kept`
    compilations: int
    sample_values: int
    not_finite: Mapping[LoweredSite, tuple[int, int, int]]
    observation: int  # how often observing JAX's own callbacks had begun or ended; odd: on
    unobserved: Mapping[Program, int]  # runs while the observation was off
    queue: Mapping[LoweredSite, tuple[int, ...]]  # from `QueueUses.counts`
    masks: Mapping[LoweredSite, tuple[int, ...]]  # from `KeyCounts.counts`
    objects: Mapping[str, tuple[int, ...]]  # from `ObjectUses.counts`
    at_ns: int  # on the recorder's clock


class Snapshot(NamedTuple):
    """What a recorder has collected so far, while it continues."""

    calls: np.ndarray  # rows (`ROW`), in the order they ended
    lowered: Sequence[LoweredSite]  # the rows refer to these by index
    threads: Sequence[str]
    outcomes: Sequence[Outcome]
    runs: Mapping[Program, int]
    not_kept: Sequence[NotKept]  # with the same indices as the rows
    errors: Sequence[str]  # to which the rows refer by index, counted from 1


BEGINNING = Mark(0, {}, 0, 0, {}, {}, 0, 0, {}, 1, {}, {}, {}, {}, 0)


def as_observed(
    outcomes: Sequence[Outcome],
    since: Mark,
    now: int,
    runs: Mapping[Program, int],
    unobserved: Mapping[Program, int],
) -> tuple[Outcome, ...]:
    """Limit the outcomes of JAX's own callbacks to what was observed.

    Without observation their outcomes are dropped, with partial observation they are unknown.

    Args:
        outcomes: the outcomes of programs that were compiled or run in a window.
        since: the mark at which the window begins.
        now: `Mark.observation` at the end of the window.
        runs: runs of programs in the window, where known.
        unobserved: `Mark.unobserved` at the end of the window.
    """
    if since.observation == now and now % 2:
        return tuple(outcomes)
    if since.observation == now:  # never observed
        return tuple(one for one in outcomes if not one.site.flavor.startswith(OBSERVED))
    missed = {p for p, count in unobserved.items() if count > since.unobserved.get(p, 0)}
    return tuple(
        one if one.program in runs and one.program not in missed else _partly_observed(one)
        for one in outcomes
    )


PARTLY_OBSERVED: Rule[Outcome] = Rule(
    "a callback of JAX's own API that the program keeps, and a run that was not observed",
    lambda outcome: (
        outcome.site.is_of_jax
        and outcome.status not in (Status.UNUSED, Status.OPTIMIZED_AWAY)  # no calls to miss
    ),
    Status.UNKNOWN,
    Reason.PARTLY_OBSERVED,
    "calls outside of the observation are missing, so the numbers say nothing",
)


RUN_BEGAN_BEFORE: Rule[Outcome] = Rule(
    "not called, and a call of its program began before the recording",
    lambda outcome: outcome.status not in (Status.UNUSED, Status.OPTIMIZED_AWAY),
    Status.UNKNOWN,
    Reason.RUN_IN_PART,
    "it may have been called before the recording, too",
)


def as_begun(
    outcomes: Sequence[Outcome], calls: np.ndarray, lowered: Sequence[LoweredSite], since: Mark
) -> tuple[Outcome, ...]:
    """Limit the outcomes of programs that ran already when a window began.

    Args:
        outcomes: the outcomes of programs that were compiled or run in a window.
        calls: its rows (`ROW`).
        lowered: the rows refer to these by index.
        since: the mark at which the window begins.
    """
    before = {lowered[n].program for n in calls["lowered"][calls["start_ns"] < since.at_ns]}
    called = {(lowered[n].program, lowered[n].site) for n in np.unique(calls["lowered"])}
    return tuple(
        _unknown(one, RUN_BEGAN_BEFORE)
        if one.program in before
        and (one.program, one.site) not in called
        and RUN_BEGAN_BEFORE.holds(one)
        else one
        for one in outcomes
    )


def _unknown(outcome: Outcome, rule: Rule[Outcome]) -> Outcome:
    return dataclasses.replace(
        outcome, status=Status.UNKNOWN, written=None, compiled=None, reason=rule.reason
    )


def _partly_observed(outcome: Outcome) -> Outcome:
    if not PARTLY_OBSERVED.holds(outcome):
        return outcome
    notes = (*outcome.notes, Note(NoteKind.PARTLY_OBSERVED))
    return dataclasses.replace(_unknown(outcome, PARTLY_OBSERVED), notes=notes)


IN_NO_PROGRAM: Rule[Site] = Rule(
    "traced, but in no program that was compiled",
    lambda site: True,
    Status.UNKNOWN,
    Reason.IN_NO_PROGRAM,
    "a derivative in eager code dropped the call, or tracing failed",
)

MOVED: Rule[Site] = Rule(
    "called in eager code, though it was traced in a loop",
    lambda site: True,
    Status.UNKNOWN,
    Reason.MAY_BE_HOISTED,
    "a derivative in eager code moved it out of the loop",
)


def without_program(lost: Iterable[Site], moved: Iterable[Site]) -> Iterator[Outcome]:
    """Yield the outcomes of sites that no program has: lost ones, and those in `Recorder.moved`."""
    none = Program("", "")
    for site in lost:
        reason = IN_NO_PROGRAM.reason
        yield Outcome(site, none, Status.UNKNOWN, traced_paths=0, compiled=0, reason=reason)
    for site in moved:
        yield Outcome(site, none, Status.UNKNOWN, reason=MOVED.reason)
