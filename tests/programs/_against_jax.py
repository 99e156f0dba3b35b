"""Compare results and calls with those of JAX's own callbacks in the same process."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.upstream.upgraded import UPGRADED

from ._judge import Judge
from ._program import walk
from ._run import Ran, Run


def against(judge: Judge, jaxs: Ran) -> None:
    skipped = _not_comparable(judge)
    for number, (mine, theirs) in enumerate(zip(judge.ran.runs, jaxs.runs, strict=False)):
        if UPGRADED and "Effects not supported in `custom_" in str(theirs.error):
            return  # it refuses its own buffer callbacks, which have effects; ours are allowed
        if (mine.error is None) != (theirs.error is None):
            judge.report("refusal", f"ours {mine.error!r}, JAX's {theirs.error!r}"[:600])
            return
        if mine.error is not None:
            return
        if not np.allclose(mine.result, theirs.result, rtol=2e-4, atol=2e-4, equal_nan=True):
            judge.report("result", f"run {number}: {mine.result}, JAX's {theirs.result}")
        moved = _moved(judge, mine, theirs) | _called_once(judge, mine, theirs)
        moved |= _dropped(judge, mine, theirs) | _called_more(judge, mine, theirs, moved)
        for host in (mine.counts.keys() | theirs.counts.keys()) - skipped - moved:
            if mine.counts[host] != theirs.counts[host]:
                text = f"{host}: {mine.counts[host]} calls, JAX's {theirs.counts[host]}"
                judge.report("JAX's count", text)
        _same_order(judge, mine.log, theirs.log, skipped | moved)


def jax_is_wrong(judge: Judge) -> bool:
    """Return whether JAX's own callbacks give wrong numbers: ordered in a predicate, under vmap."""
    return any(
        judge.hosts[path.host].ordered and {"batched", "predicate"} <= path.flags
        for path in judge.paths
    )


def _moved(judge: Judge, mine: Run, theirs: Run) -> set[str]:
    """Return debug callbacks that JAX moved out of a loop under differentiation.

    If the arguments of a callback do not change in such a loop, JAX calls it only once, even if the
    loop has length 0. The number of calls differs then, but the values must not.
    """
    return {
        path.host
        for path in judge.paths
        if judge.hosts[path.host].flavor in ("debug", "print")
        and {"differentiated", "looped"} <= path.flags
        and mine.counts[path.host] != theirs.counts[path.host]
        and _has_all_values(path.host, mine, theirs)
    }


def _has_all_values(host: str, mine: Run, theirs: Run) -> bool:
    """Return whether JAX's callback was called with every value that ours was called with."""
    return all(any(_close(x, y) for y in _values(theirs, host)) for x in _values(mine, host))


def _values(run: Run, host: str) -> list[Any]:
    return [values for name, values in run.log if name == host]


def _close(one: Any, other: Any) -> bool:
    return all(np.allclose(x, y, 1e-3, 1e-3, True) for x, y in zip(one, other, strict=True))


def _called_once(judge: Judge, mine: Run, theirs: Run) -> set[str]:
    """Return host functions that JAX calls once for all elements because of empty arrays."""
    functions = walk(judge.program.functions())
    if not any("arange(0.0)" in line.template for f in functions for line in f.body):
        return set()
    return {
        path.host
        for path in judge.paths
        if (judge.hosts[path.host].method or "").startswith("sequential")
        and "batched" in path.flags
        and 0 < theirs.counts[path.host] < mine.counts[path.host]
        and _has_all_values(path.host, mine, theirs)
    }


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
            judge.report("order", f"{ours_}, JAX's {theirs_}")


def _dropped(judge: Judge, mine: Run, theirs: Run) -> set[str]:
    """Return callbacks that JAX dropped because they compute the arguments of an io callback.

    JAX drops io callbacks in loops under differentiation.
    """
    inside = {
        path.host for path in judge.paths if {"differentiated", "looped"} <= path.flags
    } | judge.in_rules
    fewer = {host for host in inside if theirs.counts[host] < mine.counts[host]}
    flavors = {host: judge.flavor(host) for host in fewer}
    if not {"io", "tap"}.intersection(flavors.values()):
        return set()
    return {host for host, flavor in flavors.items() if flavor in ("pure", "buffer")}


def _called_more(judge: Judge, mine: Run, theirs: Run, moved: set[str]) -> set[str]:
    """Return callbacks that JAX calls for debug callbacks it moved out of a loop of length 0."""
    if all(theirs.counts[host] <= mine.counts[host] for host in moved):
        return set()
    return {
        host.name
        for host in judge.program.hosts
        if host.flavor in ("pure", "buffer") and theirs.counts[host.name] > mine.counts[host.name]
    }


def _not_comparable(judge: Judge) -> set[str]:
    """Return host functions whose number of calls differs from JAX's own, as documented."""
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
        if flavor == "buffer":  # JAX deduplicates equal calls
            skipped.add(path.host)
        if flavor in ("io", "tap") and {"differentiated", "looped"} <= path.flags:
            skipped.add(path.host)
    return skipped
