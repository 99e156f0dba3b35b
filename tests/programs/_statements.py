"""Check the status and the expected calls of each call site."""

from __future__ import annotations

from collections import Counter

from tests.lines import FEWER, SILENT, Line, lines

from ._judge import Judge
from ._run import Block, Meant

TRACED = {"jit", "inner_jit", "looped", "branched", "checkpoint", "remat"}
# An eager derivative drops and hoists calls while it traces, in no program of its own.
OF_DERIVATIVES = {"in_no_program", "traced_before", "may_be_hoisted"}


def statuses(judge: Judge) -> None:
    for number, block in enumerate(judge.ran.blocks):
        failed = any(run.error for run in block.runs)
        fresh = number == 0 and judge.program.blocks != "late"
        found = lines(block.recording)
        for line in found:
            _line(judge, line, judge.host_of(line), failed, fresh)
        if not failed and judge.program.mode != "eager":
            _compiled(judge, block)
        if fresh and not failed:
            mentioned(judge, {line.line for line in found})


def _line(judge: Judge, row: Line, host: str, failed: bool, fresh: bool) -> None:
    where = f"{host} line {row.line} {row.status}"
    if row.status in SILENT and row.made:
        judge.report("silent", f"{where}: {row.made} calls")
    if failed:
        return
    if row.expected not in (None, row.made):
        judge.report("expected", f"{where}: expected {row.expected}, {row.made} calls")
    if row.status == "kept" and not row.made and not judge.is_masked(host):
        judge.report("kept", f"{where}: no calls")
    if row.status in FEWER and row.asked is not None and row.made >= row.asked:
        judge.report("fewer", f"{where}: {row.made} calls, asked for {row.asked}")
    if row.status == "not_run":
        judge.report("not_run", f"{where}: {row.reason}")
    if not row.is_elided and row.asked is not None and row.made < row.asked:
        judge.report("unreported", f"{where}: {row.made} calls, asked for {row.asked}")
    if row.status == "unknown" and fresh:
        meant = OF_DERIVATIVES if judge.program.mode == "eager" else {"may_be_hoisted"}
        if not meant.issuperset(row.causes):
            judge.report("unknown", f"{where}: {row.reason}")


def _compiled(judge: Judge, block: Block) -> None:
    """Compare the calls made with those of the compiled program times the number of runs.

    A row's expected calls are derived from the calls that were made, so they cannot show a mistake
    here. All runs of a block run one program.
    """
    for row in lines(block.recording):
        calls = None if row.compiled is None else row.compiled * len(block.runs)
        if calls not in (None, row.made):
            where = f"{judge.host_of(row)} line {row.line} {row.status}"
            judge.report("expected", f"{where}: {calls} calls compiled, {row.made} calls")


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
    rows: dict[str, list[Line]] = {}
    for row in lines(block.recording):
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
        if made[name] < asked[name] and not any(row.is_elided for row in own):
            judge.report(
                "unreported", f"{name}: {made[name]} of {asked[name]} calls, {_statuses(own)}"
            )
        wrong = {
            "deduplicated": not _may_be_not_reached(judge, name),
            "hoisted": name in repeated,
        }
        missing = [row for row in own if row.asked is not None or wrong.get(row.status)]
        if made[name] == asked[name] and _statuses(missing) & FEWER:
            text = f"{name}: {made[name]} of {asked[name]}, {_statuses(missing)}"
            judge.report("nothing missing", text)


def _statuses(rows: list[Line]) -> set[str]:
    return {row.status for row in rows}


def _may_be_not_reached(judge: Judge, host: str) -> bool:
    """Return whether deduplicated calls may be in a branch or loop that the run did not enter."""
    return any(path.host == host and path.flags & {"branched", "looped"} for path in judge.paths)
