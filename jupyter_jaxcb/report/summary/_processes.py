"""A site of a gathered recording: what it came to in each process, and in all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...recording import Outcome, Reason, Status
from ._counts import Counts
from ._numbers import call_words
from ._reasons import Cause, advice_words, reason_words


class Verdict(NamedTuple):
    """What is decided on a site."""

    status: Status
    causes: tuple[Cause, ...]  # of it; none when live


# From counts, a number of calls that were begun, and outcomes.
Decide = Callable[[Counts, int, list[Outcome]], Verdict]


class _Own(NamedTuple):
    process: int
    calls: int
    verdict: Verdict


def over_processes(
    counts: Counts, numbers: Sequence[int], outcomes: Sequence[Outcome], decide: Decide
) -> tuple[Verdict, tuple[str, ...]]:
    """The status of a site in all processes, and what is worth knowing of each.

    A site that some process called is live, whatever became of it in the others: a note says that.

    Args:
        counts: of a recording of several processes.
        numbers: of the site among `Recording.lowered`.
        outcomes: of the site.
        decide: the status in one process.
    """
    found, recording = [], counts.recording
    whose = {recording.lowered[n].process for n in numbers}
    for process in sorted(whose | {outcome.program.process for outcome in outcomes}):
        facts = [n for n in numbers if recording.lowered[n].process == process]
        own = [outcome for outcome in outcomes if outcome.program.process == process]
        calls = sum(int(counts.calls[n]) for n in facts)
        found.append(_Own(process, calls, decide(counts, counts.begun(facts), own)))
    statuses = {own.verdict.status for own in found}
    told = [own for own in found if own.calls] or found
    verdict = told[0].verdict
    notes = [_count_words(found, len(recording.processes))]
    if len(statuses) > 1:
        others = [own for own in found if own.verdict.status is not verdict.status]
        notes += [_status_words(own) for own in others if not _is_elsewhere(own.verdict)]
    return verdict, tuple(filter(None, notes))


def _count_words(found: Sequence[_Own], total: int) -> str:
    """``3 calls in each of 2 processes``, ``3 calls in process 0, 5 calls in processes 1, 2``."""
    by_count: dict[int, list[int]] = {}
    for own in found:
        by_count.setdefault(own.calls, []).append(own.process)
    if len(by_count) == 1 and len(found) == total > 1:
        return f"{call_words(found[0].calls)} in each of {total} processes"
    return ", ".join(f"{call_words(n)} in {processes(whose)}" for n, whose in by_count.items())


def _is_elsewhere(verdict: Verdict) -> bool:
    return [cause.reason for cause in verdict.causes] == [Reason.OTHER_PROCESS]


def _status_words(own: _Own) -> str:
    status, causes = own.verdict
    why = f": {reason_words(causes)}; {advice_words(causes)}" if causes else ""
    return f"{status} in process {own.process}{why}"


def processes(numbers: Iterable[int]) -> str:
    """``process 3``, ``processes 0-2, 5``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    several = len(runs) > 1 or len(runs[0]) > 1
    return f"process{'es' * several} {', '.join(words)}"
