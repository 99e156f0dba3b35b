"""The status of a call site in a gathered recording, per process and overall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...recording import Outcome, Reason, Status
from ._counts import Counts
from ._numbers import call_words
from ._reasons import Cause, why


class Verdict(NamedTuple):
    """The status of a call site, and why."""

    status: Status
    causes: tuple[Cause, ...]  # of the status; empty when the calls are simply kept


# Takes the counts, the number of calls that were begun, and the outcomes.
Decide = Callable[[Counts, int, list[Outcome]], Verdict]


class _InProcess(NamedTuple):
    process: int
    calls: int
    verdict: Verdict


def over_processes(
    counts: Counts, numbers: Sequence[int], outcomes: Sequence[Outcome], decide: Decide
) -> tuple[Verdict, tuple[str, ...]]:
    """Decide the overall status of a call site, and note where processes differ.

    The status is that of the first process that called the site, if any did; notes list the
    processes in which the status is another one.

    Args:
        counts: the counts of a recording of several processes.
        numbers: the indices of the site's entries in `Recording.lowered`.
        outcomes: the outcomes of the site.
        decide: decides the status in one process.

    Returns:
        The overall verdict, and notes.
    """
    found, recording = [], counts.recording
    whose = {recording.lowered[n].process for n in numbers}
    for process in sorted(whose | {outcome.program.process for outcome in outcomes}):
        facts = [n for n in numbers if recording.lowered[n].process == process]
        own = [outcome for outcome in outcomes if outcome.program.process == process]
        calls = sum(int(counts.calls[n]) for n in facts)
        found.append(_InProcess(process, calls, decide(counts, counts.begun(facts), own)))
    statuses = {one.verdict.status for one in found}
    verdict = next((one.verdict for one in found if one.calls), found[0].verdict)
    notes = [_count_words(found, len(recording.processes))]
    if len(statuses) > 1:
        others = [one for one in found if one.verdict.status is not verdict.status]
        notes += [_status_words(one) for one in others if not _is_elsewhere(one.verdict)]
    return verdict, tuple(filter(None, notes))


def _count_words(found: Sequence[_InProcess], total: int) -> str:
    """``3 calls in each of 2 processes``, ``3 calls in process 0, 5 calls in processes 1, 2``."""
    by_count: dict[int, list[int]] = {}
    for one in found:
        by_count.setdefault(one.calls, []).append(one.process)
    if len(by_count) == 1 and len(found) == total > 1:
        return f"{call_words(found[0].calls)} in each of {total} processes"
    return ", ".join(f"{call_words(n)} in {processes(whose)}" for n, whose in by_count.items())


def _is_elsewhere(verdict: Verdict) -> bool:
    return [cause.reason for cause in verdict.causes] == [Reason.OTHER_PROCESS]


def _status_words(found: _InProcess) -> str:
    status, causes = found.verdict
    words = f": {why(causes)}" if causes else ""
    return f"{status.words} in process {found.process}{words}"


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
