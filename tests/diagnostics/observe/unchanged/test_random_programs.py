"""Observing random programs with JAX's callbacks does not change values, calls, order or errors."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.programs._draw import Draw
from tests.programs._run import precision, run_jaxs

pytestmark = pytest.mark.slow


def disagreement(program):
    """Return how the program differs when it is observed, or None."""
    with precision(program.x64):
        expected = run_jaxs(program).runs
        with jaxcb.observe_jax() as r:
            got = run_jaxs(program).runs
    calls = 0
    for one, other in zip(expected, got, strict=True):
        if _message(one.error) != _message(other.error):
            return f"error: {one.error!r} without, {other.error!r} with"
        if one.error is None and not np.array_equal(one.result, other.result, equal_nan=True):
            return f"result: {one.result} without, {other.result} with"
        if sorted(map(repr, one.log)) != sorted(map(repr, other.log)):
            return f"calls: {one.log} without, {other.log} with"
        for flavor in ("io", "debug", "print"):
            names = {h.name for h in program.hosts if h.ordered and h.flavor == flavor}
            ordered = [[call for call in run.log if call[0] in names] for run in (one, other)]
            if repr(ordered[0]) != repr(ordered[1]):
                return f"order: {ordered}"
        if one.returned != other.returned:
            return f"returned: {one.returned} without, {other.returned} with"
        calls += sum(one.counts.values())
    masked = any(host.typed and host.typed.masked for host in program.hosts)
    if len(r.recording) != calls and not masked:  # JAX's host function looks at the mask itself
        return f"{len(r.recording)} calls recorded, {calls} made"
    return None


def _message(error):
    return type(error), str(error).splitlines()[:1]


@pytest.mark.long
def test_observing_does_not_change_random_programs():
    found = {seed: disagreement(Draw(seed).program()) for seed in range(15)}
    jax.clear_caches()
    assert not any(found.values()), found
