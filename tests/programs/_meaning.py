"""Compare results and calls with what the text of the program means."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.lines import lines

from ._judge import Judge
from ._run import Meant


def meaning(judge: Judge, meant: list[Meant]) -> None:
    """Compare the runs with `meant`, one per run, and report differences."""
    for number, (run, expected) in enumerate(zip(judge.ran.runs, meant, strict=False)):
        if not np.allclose(run.result, expected.result, rtol=5e-4, atol=5e-4, equal_nan=True):
            judge.report("meaning", f"run {number}: {run.result}, means {expected.result}")
            return
        _as_meant(judge, run, expected)


def _as_meant(judge: Judge, run: Any, meant: Meant) -> None:
    for host in judge.program.hosts:
        name = host.name
        if name in meant.unsure or name in judge.in_rules:
            continue
        made, asked = run.counts[name], meant.counts[name]
        exact = host.ordered or host.flavor == "tap" or host.side_effect
        hoisted = not exact and host.flavor in ("pure", "buffer") and _hoisted(judge, name)
        if (made > asked and not hoisted) or (exact and made != asked):
            judge.report(
                "asked", f"{name} ({host.flavor}): {made} calls, the text asks for {asked}"
            )
    # Under vmap, JAX makes the calls of all elements at one line before those at the next line.
    batched = {path.host for path in judge.paths if "batched" in path.flags}
    for sequence in {host.sequence for host in judge.program.hosts}:
        names = {
            host.name
            for host in judge.program.hosts
            if host.sequence == sequence
            and (host.flavor == "tap" or (host.ordered and host.name not in batched))
        } - meant.unsure
        mine = [(name, values) for name, values in run.log if name in names]
        theirs = [(name, values) for name, values in meant.calls if name in names]
        if [name for name, _ in mine] != [name for name, _ in theirs]:
            judge.report("meant order", f"{mine}, means {theirs}")
        elif not all(
            judge.flavor(a) == "tap" or judge.hosts[a].typed or np.allclose(x, y, 1e-3, 1e-3)
            for (a, x), (_, y) in zip(mine, theirs, strict=True)
        ):
            judge.report("meant values", f"{mine}, means {theirs}")


def _hoisted(judge: Judge, name: str) -> bool:
    """Return whether XLA calls it before a loop, even if the loop is not entered."""
    if judge.program.blocks == "late":  # no outcomes: compiled before the recording
        return any(path.host == name and "looped" in path.flags for path in judge.paths)
    return any(
        line.function == name and line.is_hoisted
        for block in judge.ran.blocks
        for line in lines(block.recording)
    )
