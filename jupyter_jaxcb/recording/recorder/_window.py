"""Windows on what a recorder hears."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
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


class Mark(NamedTuple):
    """How much a recorder had heard at some moment; what came later is one window."""

    calls: int
    bound: Mapping[Site, int]
    lowered: int
    outcomes: int
    runs: Mapping[Program, int]
    beyond: Mapping[tuple[int, int], NotKept]  # as `CallLog.beyond` has it
    compilations: int
    sample_values: int
    not_finite: Mapping[LoweredSite, tuple[int, int]]
    observation: int  # how often that of JAX's own callbacks had begun or ended; odd: it was on
    unobserved: Mapping[Program, int]  # runs while it was off


class Snapshot(NamedTuple):
    """What a recorder has heard while it goes on listening."""

    calls: np.ndarray  # rows (`ROW`), as they ended
    lowered: Sequence[LoweredSite]  # that the rows count
    threads: Sequence[str]
    outcomes: Sequence[Outcome]
    runs: Mapping[Program, int]
    not_kept: Sequence[NotKept]  # numbered as the rows are


BEGINNING = Mark(0, {}, 0, 0, {}, {}, 0, 0, {}, 1, {})


def as_observed(
    outcomes: Sequence[Outcome],
    since: Mark,
    now: int,
    runs: Mapping[Program, int],
    unobserved: Mapping[Program, int],
) -> tuple[Outcome, ...]:
    """`outcomes`, those of JAX's own callbacks as far as these were observed.

    Args:
        outcomes: of programs that were compiled or run in a window.
        since: when it was opened.
        now: `Mark.observation` when it is closed.
        runs: how often programs ran in it, of those whose runs are told.
        unobserved: `Mark.unobserved` when it is closed.
    """
    if since.observation == now and now % 2:
        return tuple(outcomes)
    if since.observation == now:  # not for a moment
        return tuple(one for one in outcomes if not one.site.flavor.startswith(OBSERVED))
    missed = {p for p, count in unobserved.items() if count > since.unobserved.get(p, 0)}
    return tuple(
        one if one.program in runs and one.program not in missed else _partly_observed(one)
        for one in outcomes
    )


def _partly_observed(outcome: Outcome) -> Outcome:
    compiled_away = outcome.status in (Status.UNUSED, Status.OPTIMIZED_AWAY)  # whoever listens
    if compiled_away or not outcome.site.flavor.startswith(OBSERVED):
        return outcome
    return dataclasses.replace(
        outcome,
        status=Status.UNKNOWN,
        written=None,
        compiled=None,
        reason=Reason.PARTLY_OBSERVED,
        notes=(*outcome.notes, Note(NoteKind.PARTLY_OBSERVED)),
    )
