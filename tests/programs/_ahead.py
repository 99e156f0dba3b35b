"""Check that what `explain` predicts comes true."""

from __future__ import annotations

from collections import Counter
from typing import Any

from jupyter_jaxcb.recording import Site, Status
from jupyter_jaxcb.report import summarize
from tests.diagnostics.explain._same import sorted_facts

from ._judge import Judge
from ._statements import SILENT, mentioned


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
    rows = summarize(ran.explained)
    mentioned(judge, {row.site.line for row in rows})
    str(ran.explained)
    if judge.program.mode == "eager" or any(run.error for run in ran.runs):
        return
    _predicted(judge, rows)


def _predicted(judge: Judge, rows: list[Any]) -> None:
    runs = len(judge.ran.runs)
    counts: Counter[str] = Counter()
    for run in judge.ran.runs:
        counts += run.counts
    expected: dict[str, int | None] = {}
    for row in rows:
        host = judge.host_of(row)
        before = expected.get(host, 0)
        known = before is not None and row.expected is not None
        expected[host] = before + row.expected if known else None
        if row.status is Status.UNKNOWN:
            judge.report("explain unknown", f"{host} line {row.site.line}: {row.reason}")
        if row.status in SILENT and row.expected:
            judge.report("explain silent", f"{host}: {row.status}, expected {row.expected}")
    for host in counts.keys() | expected.keys():
        ahead = expected.get(host, 0)
        if ahead is not None and ahead * runs != counts[host]:
            judge.report("explain", f"{host}: {ahead} a run, {counts[host]} in {runs}")
    if judge.ran.blocks and judge.program.blocks != "late":
        _same_statuses(judge, rows)
        _same_facts(judge)


def _same_statuses(judge: Judge, rows: list[Any]) -> None:
    """Check that every bind in the program text has the status `explain` predicted."""
    recorded = summarize(judge.ran.blocks[0].recording)
    before = {_row(row.site): row.status for row in rows}
    after = {_row(row.site): row.status for row in recorded}
    for row in before.keys() | after.keys():
        explained, status = before.get(row), after.get(row)
        if explained != status and not (explained and status is Status.NOT_REACHED):
            judge.report("statuses", f"{row}: explained {explained}, recorded {status}")


def _row(site: Site) -> tuple[Any, ...]:
    """Return what identifies a row of a program in every module made of the program's text."""
    callers = tuple((frame.function, frame.line, frame.column) for frame in site.callers)
    return site.line, site.column, site.flavor, site.function, callers


def _same_facts(judge: Judge) -> None:
    """Check that `explain` predicted all facts about every bind in the program text."""
    before, after = map(sorted_facts, (judge.ran.explained, judge.ran.blocks[0].recording))
    if before != after:
        only = (
            [fact for fact in before if fact not in after],
            [fact for fact in after if fact not in before],
        )
        judge.report("facts", f"only explained: {only[0]}, only recorded: {only[1]}"[:1200])
