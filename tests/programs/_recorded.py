"""Check that recordings, in memory and in files, match what happened."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import jupyter_jaxcb as jaxcb
from tests.interface import active, to_html, to_mimebundle
from tests.lines import called, lines

from ._judge import Judge
from ._run import Block


def errors(judge: Judge) -> None:
    for number, run in enumerate(judge.ran.runs):
        if run.changed:
            judge.report("changed", f"{run.changed} arguments changed after the call")
        if run.error is None:
            continue
        planted = judge.program.fail is not None and any(
            name == judge.program.fail[0] for name, _ in run.log
        )
        if not planted:
            judge.report("raised", f"run {number}: {type(run.error).__name__}: {run.error}")
            continue
        cause = jaxcb.host_error(run.error)
        if type(cause).__name__ != "Planted":
            judge.report("host_error", f"run {number}: {run.error!r} has cause {cause!r}")
    if _raised(judge) and not any(run.error for run in judge.ran.runs):
        judge.report("swallowed", f"{judge.program.fail} raised, and no run failed")
    if active() is not None:
        judge.report("recorder left", "a recorder is active after the block")


def _raised(judge: Judge) -> bool:
    """Return whether the host function that should fail was called often enough to fail."""
    if judge.program.fail is None:
        return False
    name, number = judge.program.fail
    if judge.flavor(name) == "print":  # has no body that could raise
        return False
    return sum(run.counts[name] for run in judge.ran.runs) >= number


def blocks(judge: Judge) -> None:
    for block in judge.ran.blocks:
        counts: Counter[str] = Counter()
        for run in block.runs:
            counts += run.counts
        _recording(judge, block, counts)


def _recording(judge: Judge, block: Block, counts: Counter[str]) -> None:
    recording = block.recording
    if len(recording) != sum(counts.values()):
        judge.report("length", f"{len(recording)} calls recorded, {dict(counts)} made")
    recorded: Counter[str] = Counter()
    for line in lines(recording):
        host = judge.host_of(line)
        name = "debug_print" if judge.flavor(host) == "print" else host
        if line.function != name:
            judge.report("site", f"line {line.line} binds {host}, not {line.function}")
        recorded[host] += line.made
    for host in counts.keys() | recorded.keys():
        if counts[host] != recorded[host]:
            judge.report("count", f"{host}: {counts[host]} calls, {recorded[host]} recorded")
    _order(judge, block)


def _order(judge: Judge, block: Block) -> None:
    elsewhere = {host.name for host in judge.program.hosts if host.queued or host.flavor == "print"}
    elsewhere.add("debug_print")
    names = [name for name in called(block.recording) if name not in elsewhere]
    made = [name for run in block.runs for name, _ in run.log if name not in elsewhere]
    if names != made:
        judge.report("log order", f"recorded {names}, made {made}")


def files(judge: Judge) -> None:
    for block in judge.ran.blocks:
        _kept(judge, block.recording)


def _kept(judge: Judge, recording: jaxcb.Recording) -> None:
    text = recording.to_json()
    if jaxcb.Recording.from_json(text).to_json() != text:
        judge.report("json", "from_json(to_json) differs")
    with tempfile.TemporaryDirectory() as folder:
        for end in ("json", "jaxcb"):
            path = Path(folder, f"run.{end}")
            recording.save(path)
            if jaxcb.load(path).to_json() != text:
                judge.report("file", f".{end} differs")
    again = jaxcb.Recording.from_json(text)
    if str(again) != str(recording):
        judge.report("report", "the report of a file differs")
    for show in (to_html, to_mimebundle):
        show(recording)
