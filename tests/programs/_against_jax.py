"""Compare results and calls with those of JAX's own callbacks in the same process."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.upgraded import UPGRADED

from ._judge import Judge
from ._program import Host, walk
from ._run import Ran, Run
from ._typed import has_empty


def against(judge: Judge, jaxs: Ran) -> None:
    skipped = _not_comparable(judge)
    for number, (mine, theirs) in enumerate(zip(judge.ran.runs, jaxs.runs, strict=False)):
        if UPGRADED and "Effects not supported in `custom_" in str(theirs.error):
            return  # it refuses its own buffer callbacks, which have effects; ours are allowed
        if mine.error is None and "IO effect" in str(theirs.error):
            return  # it refuses io callbacks in vmapped branches and loops; ours are right there
        if (mine.error is None) != (theirs.error is None):
            judge.report("refusal", f"ours {mine.error!r}, JAX's {theirs.error!r}"[:600])
            return
        if mine.error is not None:
            if type(mine.error) is not type(theirs.error):
                judge.report("refusal", f"ours {mine.error!r}, JAX's {theirs.error!r}"[:600])
            return
        if mine.returned != theirs.returned:
            found = mine.returned - theirs.returned, theirs.returned - mine.returned
            judge.report("returned", f"only ours: {found[0]}, only JAX's: {found[1]}"[:900])
        if not np.allclose(mine.result, theirs.result, rtol=2e-4, atol=2e-4, equal_nan=True):
            judge.report("result", f"run {number}: {mine.result}, JAX's {theirs.result}")
        moved = _moved(judge, mine, theirs) | _called_once(judge, mine, theirs)
        moved |= _dropped(judge, mine, theirs) | _called_more(judge, mine, theirs, moved)
        moved |= _not_reached(judge, mine, theirs)
        for host in (mine.counts.keys() | theirs.counts.keys()) - skipped - moved:
            if mine.counts[host] != theirs.counts[host]:
                text = f"{host}: {mine.counts[host]} calls, JAX's {theirs.counts[host]}"
                judge.report("JAX's count", text)
            elif _exact(judge, mine, host) != _exact(judge, theirs, host):
                text = f"{_values(mine, host)}, JAX's {_values(theirs, host)}"
                judge.report("JAX's values", text[:900])
        _same_order(judge, mine, theirs, skipped | moved)


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
        if (judge.hosts[path.host].flavor in ("debug", "print") or path.host in judge.dropped)
        and {"differentiated", "looped"} <= path.flags
        and mine.counts[path.host] != theirs.counts[path.host]
        and _has_all_values(path.host, mine, theirs)
        and (path.host not in judge.dropped or mine.counts[path.host] or _once(theirs, path.host))
    }


def _once(run: Run, host: str) -> bool:
    return run.counts[host] == 1


def _has_all_values(host: str, mine: Run, theirs: Run) -> bool:
    """Return whether JAX's callback was called with every value that ours was called with."""
    return all(any(_close(x, y) for y in _values(theirs, host)) for x in _values(mine, host))


def _values(run: Run, host: str) -> list[Any]:
    return [values for name, values in run.log if name == host]


def _exact(judge: Judge, run: Run, host: str) -> list[Any]:
    """Return what must be the same with JAX's callbacks to the last bit: float32s may differ."""
    if judge.hosts[host].typed:
        return sorted(_values(run, host))
    return sorted([np.shape(value) for value in values] for values in _values(run, host))


def _close(one: Any, other: Any) -> bool:
    if one and isinstance(one[0], str):  # of a typed host function
        return one == other
    return all(np.allclose(x, y, 1e-3, 1e-3, True) for x, y in zip(one, other, strict=True))


def _called_once(judge: Judge, mine: Run, theirs: Run) -> set[str]:
    """Return host functions that JAX calls once for all elements because of empty arrays."""
    functions = walk(judge.program.functions())
    empty = any("arange(0.0)" in line.template for f in functions for line in f.body)
    return {
        path.host
        for path in judge.paths
        if (empty or has_empty(judge.hosts[path.host].typed))
        and (judge.hosts[path.host].method or "").startswith("sequential")
        and "batched" in path.flags
        and 0 < theirs.counts[path.host] < mine.counts[path.host]
        and _has_all_values(path.host, mine, theirs)
    }


def _not_reached(judge: Judge, mine: Run, theirs: Run) -> set[str]:
    """Return host functions that JAX calls for batch elements that do not reach the call, too."""
    return {
        path.host
        for path in judge.paths
        if (judge.hosts[path.host].registered or judge.flavor(path.host) == "io")
        and ({"batched", "branched"} <= path.flags or {"batched", "while_loop"} <= path.flags)
        and mine.counts[path.host] <= theirs.counts[path.host]
        and _has_all_values(path.host, mine, theirs)
    }


def _same_order(judge: Judge, mine: Run, theirs: Run, skipped: set[str]) -> None:
    """Check the order of ordered calls, and that of the calls at a line that runs only once a step.

    JAX loops over the batch elements of such a line in a certain order, also without `ordered`.
    """
    skipped = skipped | judge.dropped
    hosts = [host for host in judge.program.hosts if host.name not in skipped]
    groups = [
        {host.name for host in hosts if host.ordered and host.sequence == sequence}
        for sequence in {host.sequence for host in hosts}
    ]
    groups += [{host.name} for host in hosts if _is_alone(judge, host)]
    for names in groups:
        ours_, theirs_ = ([call for call in run.log if call[0] in names] for run in (mine, theirs))
        same = len(ours_) == len(theirs_) and all(
            one[0] == other[0] and _close(one[1], other[1])
            for one, other in zip(ours_, theirs_, strict=True)
        )
        if not same:
            judge.report("order", f"{ours_}, JAX's {theirs_}"[:900])


def _is_alone(judge: Judge, host: Host) -> bool:
    """Return whether one line calls the host function, in a loop that JAX makes of a vmap."""
    paths = [path for path in judge.paths if path.host == host.name]
    return (
        judge.program.mode != "eager"
        and len(paths) == 1
        and host.name not in judge.in_rules
        and not paths[0].flags & {"remat", "differentiated", "checkpoint"}
        and (host.method == "sequential" or (host.flavor == "io" and not host.ordered))
    )


def _dropped(judge: Judge, mine: Run, theirs: Run) -> set[str]:
    """Return callbacks that JAX calls less often because of io callbacks in differentiated loops.

    JAX computes the results of these, see `_preludes.jaxs`, so XLA can hoist what depends on them.
    JAX drops what only computes the arguments of a tap.
    """
    inside = {
        path.host for path in judge.paths if {"differentiated", "looped"} <= path.flags
    } | judge.in_rules
    fewer = {host for host in inside if theirs.counts[host] < mine.counts[host]}
    if not judge.dropped and "tap" not in map(judge.flavor, fewer):
        return set()
    return {host for host in fewer if judge.flavor(host) in ("pure", "buffer")}


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
    skipped = {host for host in judge.in_rules if judge.flavor(host) == "tap"}
    tapped = any(
        judge.hosts[path.host].flavor == "tap" and "looped" in path.flags for path in judge.paths
    )
    for path in judge.paths:
        flavor = judge.hosts[path.host].flavor
        if tapped and "looped" in path.flags:
            skipped.add(path.host)
        gets_batches = flavor == "tap" or judge.hosts[path.host].gets_batches
        if gets_batches and "batched" in path.flags:
            skipped.add(path.host)
        if flavor == "buffer":  # JAX deduplicates equal calls
            skipped.add(path.host)
        if flavor == "tap" and {"differentiated", "looped"} <= path.flags:
            skipped.add(path.host)
    return skipped
