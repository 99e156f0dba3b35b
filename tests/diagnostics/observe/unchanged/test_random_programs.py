"""Observing random programs with JAX's callbacks does not change values, calls, order or errors."""

import itertools
import os
import random

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import jupyter_jaxcb as jaxcb
from tests.differential._compare import JAX, difference, observe, precision
from tests.differential._interpret import Interpreter
from tests.differential._programs import METHODS, sites
from tests.differential._strategy import drawn, programs

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("JAXCB_FUZZ_EXAMPLES", "15"))


def run(program):
    interpreter = Interpreter(program, JAX)
    return observe(interpreter, interpreter.function(), interpreter.start())


def disagreement(program):
    """Return how the program differs when it is observed, or None."""
    with precision(program.x64):
        expected = run(program)
        try:
            with jaxcb.observe_jax() as r:
                got = run(program)
        except Exception as error:  # from a failed run that only the end of the block waited for
            return f"{type(error).__name__}: {error}"
        found = difference(program, expected, got)
        if found is None and expected.message.splitlines()[:1] != got.message.splitlines()[:1]:
            found = f"message: {expected.message} without, {got.message} with"
        if found is None and len(r.recording) != len(got.calls):
            found = f"{len(r.recording)} calls recorded, {len(got.calls)} made"
        return found


def test_observing_does_not_change_random_programs():
    missing = {*METHODS, "pure", "io", "debug"}

    def kinds(program):
        return {callback.method or callback.flavor for callback, _ in sites(program.block)}

    def compare(program):
        found = disagreement(program)
        assert found is None, f"{found}\n{program}"
        missing.difference_update(kinds(program))

    settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(given(programs())(compare))()
    for program in map(drawn, map(random.Random, itertools.count())):
        if not missing:
            break
        if kinds(program) & missing:
            compare(program)


def test_comparison_finds_a_wrapper_that_calls_twice(monkeypatch):
    from jupyter_jaxcb.stack.dispatch._observed_call import RecordedCall

    once = RecordedCall.__call__

    def twice(self, *args, **kwargs):
        once(self, *args, **kwargs)
        return once(self, *args, **kwargs)

    monkeypatch.setattr(RecordedCall, "__call__", twice)
    found = map(disagreement, map(drawn, map(random.Random, range(20))))
    assert any("calls" in (text or "") for text in found)
