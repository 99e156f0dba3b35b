"""What became of a call site: its status, from its outcomes, runs and calls.

What JAX and XLA did with one bind in one program is an outcome: `stack.elision` decides that.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

from ...recording import LoweredSite, Outcome, Program, Reason, Rule, Status, decide
from ._counts import Counts
from ._processes import Verdict
from ._reasons import Cause, Runs, causes_of

_GONE = (Status.UNUSED, Status.OPTIMIZED_AWAY)
_LESS_DEEP = (Reason.TRACED_BEFORE, Reason.MAY_BE_HOISTED)
FEWER = (Status.DEDUPLICATED, Status.HOISTED)


@dataclasses.dataclass(frozen=True)
class Seen:
    """The evidence about a call site."""

    counts: Counts
    calls: int  # host calls that were begun
    outcomes: Sequence[Outcome]

    @property
    def ahead(self) -> bool:
        """Whether its programs are explained, not run."""
        return self.counts.recording.ahead

    @property
    def called(self) -> bool:
        """Whether it was called; explained programs count as called."""
        return bool(self.calls or self.ahead)

    @functools.cached_property
    def elided(self) -> list[Outcome]:
        """Outcomes with fewer calls than the program text says."""
        return [one for one in self.outcomes if one.elided]

    @functools.cached_property
    def fewer(self) -> list[Outcome]:
        """Elided outcomes that leave some calls."""
        return [one for one in self.elided if one.status in FEWER]

    @functools.cached_property
    def held(self) -> list[Outcome]:
        """Outcomes whose program holds the call, as far as is known."""
        return [one for one in self.outcomes if one.status not in _GONE]

    @functools.cached_property
    def unknown(self) -> list[Outcome]:
        """Outcomes of programs that could not be read."""
        return [one for one in self.held if one.status is Status.UNKNOWN]

    @functools.cached_property
    def traced_deeper(self) -> list[Outcome]:
        """Outcomes of binds that JAX traced in more loops."""
        return [one for one in self.held if one.reason in _LESS_DEEP]

    @functools.cached_property
    def programs(self) -> set[Program]:
        """The programs that hold the call."""
        return {one.program for one in self.held}

    @property
    def elsewhere(self) -> bool:
        """Whether its programs leave all of its calls to other processes."""
        return all(one.status is Status.KEPT and one.compiled == 0 for one in self.held)

    @property
    def failed(self) -> bool:
        """Whether a run of its programs failed."""
        return any(map(self.counts.programs.failed, self.programs))

    @property
    def completed(self) -> int:
        """The number of completed runs of its programs, at least."""
        return sum(self.counts.programs.completed(one)[0] for one in self.programs)

    @property
    def ran(self) -> bool:
        """Whether a program that holds the call ran."""
        known = self.counts.programs
        return any(known.runs(p) or p in known.called for p in self.programs)

    @property
    def unseen(self) -> bool:
        """Whether the runs of a program that holds the call were not observed."""
        return any(self.counts.programs.runs(program) is None for program in self.programs)


def _fewer(seen: Seen) -> Outcome | None:
    return seen.fewer[0] if seen.fewer else None


# Beside status and reason, a row has the outcome that decides, or that adds a cause.
RULES: tuple[Rule[Seen], ...] = (
    Rule(
        "explained, and a program that may hold it could not be read",
        lambda seen: seen.ahead and seen.unknown,
        None,
        None,
        "no run can tell whether it is called",
        lambda seen: seen.unknown[0],
    ),
    Rule(
        "explained, and no program holds it",
        lambda seen: seen.ahead and seen.outcomes and not seen.held,
        None,
        None,
        "a run could not call it",
        lambda seen: seen.outcomes[0],
    ),
    Rule(
        "called or explained, and a program makes fewer calls than its text says",
        lambda seen: seen.called and seen.fewer,
        None,
        None,
        "the calls that were made are not all that the text asks for",
        _fewer,
    ),
    Rule(
        "called or explained, and a derivative may have moved its call out of a loop",
        lambda seen: seen.called and seen.traced_deeper,
        None,
        None,
        "the calls that were made may not be all that the text asks for",
        lambda seen: seen.traced_deeper[0],
    ),
    Rule(
        "called or explained",
        lambda seen: seen.called,
        Status.KEPT,
        None,
        "a call shows that a program holds it; another bind on the line may be elided",
        lambda seen: seen.elided[0] if seen.elided else None,
    ),
    Rule(
        "not called, and in no compiled program",
        lambda seen: not seen.outcomes,
        Status.UNUSED,
        Reason.NO_BATCH_ELEMENT,
        "it was called eagerly, and an eager call without batch elements calls nothing",
    ),
    Rule(
        "no program holds it",
        lambda seen: not seen.held,
        None,
        None,
        "no run could call it; an elided outcome says more than one that nobody asked for",
        lambda seen: (seen.elided or seen.outcomes)[0],
    ),
    Rule(
        "a program that may hold it could not be read",
        lambda seen: seen.unknown,
        None,
        None,
        "without calls, nothing tells whether that program holds it",
        lambda seen: seen.unknown[0],
    ),
    Rule(
        "its programs make no call in this process",
        lambda seen: seen.elsewhere,
        Status.NOT_RUN,
        Reason.OTHER_PROCESS,
        "another process makes the calls of its shards",
    ),
    Rule(
        "a run failed, and none is known to have completed",
        lambda seen: seen.failed and not seen.completed,
        Status.NOT_RUN,
        Reason.EARLIER_ERROR,
        "the error may have come before the call",
        _fewer,
    ),
    Rule(
        "some runs failed, others completed",
        lambda seen: seen.failed,
        Status.NOT_REACHED,
        Reason.NOT_REACHED_OR_FAILED,
        "the completed runs did not enter the branch or loop around it",
        _fewer,
    ),
    Rule(
        "a program that holds it ran, and calls that each run makes are missing or not over",
        lambda seen: any(map(seen.counts.programs.in_part, seen.programs)),
        Status.UNKNOWN,
        Reason.RUN_IN_PART,
        "the run began before the recording or ended after it, and may have called it there",
    ),
    Rule(
        "a program that holds it ran",
        lambda seen: seen.ran,
        Status.NOT_REACHED,
        Reason.NOT_REACHED,
        "the run would have called it if it had entered the branch or loop around it",
        _fewer,
    ),
    Rule(
        "the runs of a program that holds it were not observed",
        lambda seen: seen.unseen,
        Status.UNKNOWN,
        Reason.RUNS_NOT_SEEN,
        "it may not have run, or not have reached the call",
    ),
    Rule(
        "no program that holds it ran",
        lambda seen: True,
        Status.NOT_RUN,
        Reason.NOT_RUN,
        "only a run makes calls",
        _fewer,
    ),
)


def status_of(counts: Counts, calls: int, outcomes: Sequence[Outcome]) -> Verdict:
    """Decide the status of a call site, in one process.

    Args:
        counts: the counts of the recording.
        calls: the number of its host calls that were begun.
        outcomes: its outcomes.
    """
    seen = Seen(counts, calls, outcomes)
    rule = decide(RULES, seen)
    outcome = rule.more(seen) if rule.more else None
    more = causes_of(outcome, elsewhere=rule.status is Status.KEPT) if outcome else ()
    if rule.status is None:
        assert outcome is not None
        return Verdict(outcome.status, more)
    return Verdict(rule.status, (*_own_cause(rule.reason, seen), *more))


def _own_cause(reason: Reason | None, seen: Seen) -> tuple[Cause, ...]:
    if reason is None:
        return ()
    if reason is not Reason.NOT_REACHED_OR_FAILED:
        return (Cause(reason),)
    completed = [seen.counts.programs.completed(program) for program in seen.programs]
    failed = [seen.counts.programs.failures(program) for program in seen.programs]
    return (Cause(reason, completed=_runs(completed), failed=_runs(failed)),)


def _runs(bounds: Sequence[tuple[int, int | None]]) -> Runs:
    return Runs(sum(low for low, _ in bounds), all(low == high for low, high in bounds))


class Decided(NamedTuple):
    """The evidence that explains a decided status."""

    status: Status
    lowered: Sequence[LoweredSite]
    stale: bool  # a program calls an earlier registration of its function

    @property
    def needs_nothing(self) -> bool:
        """Whether it was removed, and its results have no elements."""
        return self.status in _GONE and bool(self.lowered) and all(map(_is_empty, self.lowered))

    @property
    def has_results(self) -> bool:
        """Whether it returns arrays."""
        return any(fact.results for fact in self.lowered)


# The status stays in all of these rows.
REASONS: tuple[Rule[Decided], ...] = (
    Rule(
        "a program calls an earlier registration of its function",
        lambda seen: seen.stale,
        None,
        Reason.EARLIER_REGISTRATION,
        "the program was compiled before the function was registered again",
    ),
    Rule(
        "removed by JAX or XLA, and the arrays that it returns have no elements",
        lambda seen: seen.needs_nothing and seen.has_results,
        None,
        Reason.EMPTY_RESULT,
        "nothing can need an array without elements",
    ),
    Rule(
        "removed by JAX or XLA, and it returns no arrays",
        lambda seen: seen.needs_nothing,
        None,
        Reason.NO_RESULT,
        "nothing can need a call without side effects and without results",
    ),
    Rule("otherwise", lambda seen: True, None, None, "its status has a reason already"),
)


def corrected(verdict: Verdict, lowered: Sequence[LoweredSite], stale: bool) -> Verdict:
    """Replace the causes of `verdict` where the registration or the results explain it better.

    Args:
        verdict: from `status_of`, over all processes.
        lowered: the site's entries in `Recording.lowered`.
        stale: whether a program calls an earlier registration of its function.
    """
    reason = decide(REASONS, Decided(verdict.status, lowered, stale)).reason
    return verdict if reason is None else verdict._replace(causes=(Cause(reason),))


def _is_empty(lowered: LoweredSite) -> bool:
    """Whether all results of a call are empty, for another reason than an empty vmap axis."""
    pure = lowered.site.flavor in ("pure", "jax pure")  # other flavors are called nevertheless
    return pure and not lowered.is_empty and all(0 in aval.shape for aval in lowered.results)
