"""Check the status and the expected calls of each call site."""

from __future__ import annotations

from collections import Counter
from typing import Any

from jupyter_jaxcb.recording import Reason, Site, Status
from jupyter_jaxcb.report import summarize

from ._judge import Judge
from ._run import Block, Meant

SILENT = {Status.UNUSED, Status.OPTIMIZED_AWAY, Status.NOT_REACHED, Status.NOT_RUN}
TRACED = {"jit", "inner_jit", "looped", "branched", "checkpoint", "remat"}
FEWER = {Status.DEDUPLICATED, Status.HOISTED}
# An eager derivative drops and hoists calls while it traces, in no program of its own.
OF_DERIVATIVES = {Reason.IN_NO_PROGRAM, Reason.TRACED_BEFORE, Reason.MAY_BE_HOISTED}


def statuses(judge: Judge) -> None:
    for number, block in enumerate(judge.ran.blocks):
        failed = any(run.error for run in block.runs)
        fresh = number == 0 and judge.program.blocks != "late"
        rows = summarize(block.recording)
        for row in rows:
            _row(judge, row, judge.host_of(row), failed, fresh)
        if not failed and judge.program.mode != "eager":
            _compiled(judge, block)
        if fresh and not failed:
            mentioned(judge, {row.site.line for row in rows})


def _row(judge: Judge, row: Any, host: str, failed: bool, fresh: bool) -> None:
    where = f"{host} line {row.site.line} {row.status}"
    if row.status in SILENT and row.calls:
        judge.report("silent", f"{where}: {row.calls} calls")
    if failed:
        return
    if row.expected not in (None, row.calls):
        judge.report("expected", f"{where}: expected {row.expected}, {row.calls} calls")
    if row.status is Status.KEPT and not row.calls and not judge.is_masked(host):
        judge.report("kept", f"{where}: no calls")
    if row.status in FEWER and row.written is not None and row.calls >= row.written:
        judge.report("fewer", f"{where}: {row.calls} calls, written {row.written}")
    if row.status is Status.NOT_RUN:
        judge.report("not_run", f"{where}: {row.reason}")
    if not row.elided and row.written is not None and row.calls < row.written:
        judge.report("unreported", f"{where}: {row.calls} calls, written {row.written}")
    if row.status is Status.UNKNOWN and fresh:
        meant = OF_DERIVATIVES if judge.program.mode == "eager" else {Reason.MAY_BE_HOISTED}
        if not meant.issuperset(cause.reason for cause in row.causes):
            judge.report("unknown", f"{where}: {row.reason}")


def _compiled(judge: Judge, block: Block) -> None:
    """Compare the calls made with those of the compiled program times the number of runs.

    A row's expected calls are derived from the calls that were made, so they cannot show a mistake
    here. All runs of a block run one program.
    """
    compiled: dict[Site, list[int | None]] = {}
    for outcome in block.recording.outcomes:
        compiled.setdefault(outcome.site, []).append(outcome.compiled)
    for row in summarize(block.recording):
        counts = compiled.get(row.site, [None])
        calls = None if None in counts else sum(counts) * len(block.runs)
        if calls not in (None, row.calls):
            where = f"{judge.host_of(row)} line {row.site.line} {row.status}"
            judge.report("expected", f"{where}: {calls} calls compiled, {row.calls} calls")


def mentioned(judge: Judge, lines: set[int]) -> None:
    for path in judge.paths:
        line = judge.ran.writer.statements[path.line]
        if line in lines or "custom_jvp" in path.flags or "custom_vjp" in path.flags:
            continue
        if "differentiated" in path.flags:
            if judge.hosts[path.host].rule:
                continue
            if judge.program.mode == "eager" and path.flags & TRACED:
                continue  # there is no program that could report it, see docs/limits.md
        judge.report("silence", f"{path.host} line {line} not mentioned, {sorted(path.flags)}")


def complete(judge: Judge, block: Block, meant: list[Meant]) -> None:
    """Check that missing calls are reported as elided, and that no others are."""
    rows: dict[str, list[Any]] = {}
    for row in summarize(block.recording):
        rows.setdefault(judge.host_of(row), []).append(row)
    asked: Counter[str] = Counter()
    made: Counter[str] = Counter()
    unsure, repeated = set(judge.in_rules), set()
    for run, expected in zip(judge.ran.runs, meant, strict=False):
        if run in block.runs:
            asked += expected.counts
            made += run.counts
            unsure |= expected.unsure
            repeated |= expected.repeated
    for name, own in rows.items():
        if name in unsure or name not in judge.hosts:
            continue
        if made[name] < asked[name] and not any(row.elided for row in own):
            judge.report(
                "unreported", f"{name}: {made[name]} of {asked[name]} calls, {_statuses(own)}"
            )
        wrong = {
            Status.DEDUPLICATED: not _may_be_not_reached(judge, name),
            Status.HOISTED: name in repeated,
        }
        missing = [row for row in own if row.written is not None or wrong.get(row.status)]
        if made[name] == asked[name] and _statuses(missing) & FEWER:
            text = f"{name}: {made[name]} of {asked[name]}, {_statuses(missing)}"
            judge.report("nothing missing", text)


def _statuses(rows: list[Any]) -> set[Status]:
    return {row.status for row in rows}


def _may_be_not_reached(judge: Judge, host: str) -> bool:
    """Return whether deduplicated calls may be in a branch or loop that the run did not enter."""
    return any(path.host == host and path.flags & {"branched", "looped"} for path in judge.paths)
