"""Check that what `explain` predicts comes true."""

from __future__ import annotations

from collections import Counter

from tests.lines import SILENT, Line, facts, lines

from ._judge import Judge
from ._statements import mentioned


def ahead(judge: Judge) -> None:
    ran = judge.ran
    if ran.explain_log:
        judge.report("explain calls", f"{ran.explain_log}")
    if ran.explain_error is not None:
        if ran.runs[0].error is None and judge.program.mode != "eager":
            judge.report("explain raised", repr(ran.explain_error))
        return
    if ran.explained is None:
        return
    predicted = lines(ran.explained)
    mentioned(judge, {line.line for line in predicted})
    str(ran.explained)
    if judge.program.mode == "eager" or any(run.error for run in ran.runs):
        return
    _predicted(judge, predicted)


def _predicted(judge: Judge, predicted: list[Line]) -> None:
    runs = len(judge.ran.runs)
    counts: Counter[str] = Counter()
    for run in judge.ran.runs:
        counts += run.counts
    expected: dict[str, int | None] = {}
    for line in predicted:
        host = judge.host_of(line)
        before = expected.get(host, 0)
        known = before is not None and line.expected is not None
        expected[host] = before + line.expected if known else None
        # Of a pure call beside an ordered effect in a predicate, it cannot be told.
        if line.status == "unknown" and line.causes != ("may_be_hoisted",):
            judge.report("explain unknown", f"{host} line {line.line}: {line.reason}")
        if line.status in SILENT and line.expected:
            judge.report("explain silent", f"{host}: {line.status}, expected {line.expected}")
    for host in counts.keys() | expected.keys():
        ahead = expected.get(host, 0)
        if ahead is not None and ahead * runs != counts[host]:
            judge.report("explain", f"{host}: {ahead} a run, {counts[host]} in {runs}")
    if judge.ran.blocks and judge.program.blocks != "late":
        _same_statuses(judge, predicted)
        _same_facts(judge)


def _same_statuses(judge: Judge, predicted: list[Line]) -> None:
    """Check that every bind in the program text has the status `explain` predicted."""
    before = {line.place: line.status for line in predicted}
    after = {line.place: line.status for line in lines(judge.ran.blocks[0].recording)}
    for place in before.keys() | after.keys():
        explained, status = before.get(place), after.get(place)
        if explained != status and not (explained and status == "not_reached"):
            judge.report("statuses", f"{place}: explained {explained}, recorded {status}")


def _same_facts(judge: Judge) -> None:
    """Check that `explain` predicted all facts about every bind in the program text."""
    before, after = map(facts, (judge.ran.explained, judge.ran.blocks[0].recording))
    if before != after:
        only = (
            [fact for fact in before if fact not in after],
            [fact for fact in after if fact not in before],
        )
        judge.report("facts", f"only explained: {only[0]}, only recorded: {only[1]}"[:1200])
