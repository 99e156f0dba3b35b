"""What runs gave and called, against JAX's own callbacks in the same process."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._judge import Judge
from ._run import Ran


def against(judge: Judge, jaxs: Ran) -> None:
    skipped = _not_comparable(judge)
    for number, (mine, theirs) in enumerate(zip(judge.ran.runs, jaxs.runs, strict=False)):
        if (mine.error is None) != (theirs.error is None):
            judge.say("refusal", f"ours {mine.error!r}, JAX's {theirs.error!r}"[:600])
            return
        if mine.error is not None:
            return
        if not np.allclose(mine.result, theirs.result, rtol=2e-4, atol=2e-4, equal_nan=True):
            judge.say("result", f"run {number}: {mine.result}, JAX's {theirs.result}")
        for host in mine.counts.keys() | theirs.counts.keys():
            if host not in skipped and mine.counts[host] != theirs.counts[host]:
                text = f"{host}: {mine.counts[host]} calls, JAX's {theirs.counts[host]}"
                judge.say("JAX's count", text)
        _same_order(judge, mine.log, theirs.log, skipped)


def _same_order(judge: Judge, mine: Any, theirs: Any, skipped: set[str]) -> None:
    for flavors in (("tap",), ("io",), ("debug",), ("print",)):
        ours_, theirs_ = (
            [
                name
                for name, _ in log
                if name not in skipped
                and judge.flavor(name) in flavors
                and (judge.hosts[name].ordered)
            ]
            for log in (mine, theirs)
        )
        if ours_ != theirs_:
            judge.say("order", f"{ours_}, JAX's {theirs_}")


def _not_comparable(judge: Judge) -> set[str]:
    """Host functions whose number of calls is, as documented, not that of JAX's own."""
    skipped = set()
    tapped = any(
        judge.hosts[path.host].flavor == "tap" and "looped" in path.flags for path in judge.paths
    )
    for path in judge.paths:
        flavor = judge.hosts[path.host].flavor
        if tapped and "looped" in path.flags:
            skipped.add(path.host)
        if flavor == "tap" and "batched" in path.flags:
            skipped.add(path.host)
        if flavor == "buffer":  # JAX makes one call of equal ones
            skipped.add(path.host)
        if flavor in ("io", "tap") and {"differentiated", "looped"} <= path.flags:
            skipped.add(path.host)
    return skipped
