"""What became of a call site: its status, from its outcomes, runs and calls.

What JAX and XLA did with one bind in one program is an outcome: `stack.elision` decides that. Here
the programs of the site are put together with what ran.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...recording import Outcome, Program, Reason, Status
from ._counts import Counts
from ._reasons import Cause, causes_of
from ._words import counted

# The status of a call site, and why; without causes its calls are simply kept.
Verdict = tuple[Status, tuple[Cause, ...]]
_GONE = (Status.UNUSED, Status.OPTIMIZED_AWAY)
FEWER = (Status.DEDUPLICATED, Status.HOISTED, Status.FEWER)
_NOTHING_TO_CALL_FOR = (
    "vmap mapped it over an axis of size 0, or its result is empty, so there was nothing to call "
    "it for"
)


def status_of(counts: Counts, calls: int, outcomes: Sequence[Outcome]) -> Verdict:
    """Decide the status of a call site.

    Args:
        counts: the counts of the recording.
        calls: the number of its host calls that were begun.
        outcomes: its outcomes.
    """
    ahead = counts.recording.ahead  # its programs are explained, not run
    elided = [one for one in outcomes if one.elided]
    fewer = [one for one in elided if one.status in FEWER]  # which leave some calls
    held = [one for one in outcomes if one.status not in _GONE]  # as far as is known
    unknown = [one for one in held if one.status is Status.UNKNOWN]
    if ahead and unknown:  # no run can tell whether it is called
        return _as(unknown[0])
    if calls or (ahead and (held or not outcomes)):
        # The calls that were made are not all that the text asks for, or may not be.
        less = fewer or [one for one in held if one.reason is Reason.MAY_BE_HOISTED]
        if less:
            return _as(less[0])
        # A program holds it; another bind on the line may be elided.
        return Status.KEPT, causes_of(elided[0], elsewhere=True) if elided else ()
    if not outcomes:  # it was called eagerly
        return Status.UNUSED, (Cause(Reason.NEVER_REACHED, detail=_NOTHING_TO_CALL_FOR),)
    if not held:  # an elided outcome says more than one of a call that is not asked for
        return _as(outcomes[0] if ahead else (elided or outcomes)[0])
    if unknown:  # without calls, nothing tells whether that program holds it
        return _as(unknown[0])
    if all(one.status is Status.KEPT and one.compiled == 0 for one in held):
        return Status.NOT_RUN, (Cause(Reason.OTHER_PROCESS),)
    programs = {one.program for one in held}
    status, cause = _by_runs(counts, programs)
    return status, (cause, *(causes_of(fewer[0]) if fewer else ()))


def _as(outcome: Outcome) -> Verdict:
    return outcome.status, causes_of(outcome)


def _by_runs(counts: Counts, programs: set[Program]) -> tuple[Status, Cause]:
    """Decide the status of a site that was not called, from the runs of its programs."""
    runs = counts.programs
    if any(map(runs.failed, programs)):
        completed = [runs.completed(program) for program in programs]
        if not any(least for least, _ in completed):  # the error may have come before the call
            return Status.NOT_RUN, Cause(Reason.EARLIER_ERROR)
        failed = [runs.failures(program) for program in programs]
        detail = f"{_at_least(completed)}, {_at_least(failed)}"
        return Status.NOT_REACHED, Cause(Reason.NOT_REACHED, detail=detail)
    if any(map(runs.in_part, programs)):  # it may have been called outside of the recording
        return Status.UNKNOWN, Cause(Reason.RUN_IN_PART)
    if any(runs.runs(program) or program in runs.called for program in programs):
        return Status.NOT_REACHED, Cause(Reason.NOT_REACHED)
    if any(runs.runs(program) is None for program in programs):
        return Status.UNKNOWN, Cause(Reason.RUNS_NOT_SEEN)
    return Status.NOT_RUN, Cause(Reason.NOT_RUN)


def _at_least(bounds: Sequence[tuple[int, int | None]]) -> str:
    """Return a number of runs in words, which may be a lower bound."""
    words = counted(sum(least for least, _ in bounds), "run")
    return words if all(least == most for least, most in bounds) else f"at least {words}"
