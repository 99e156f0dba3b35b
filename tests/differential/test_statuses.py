"""Recordings and explanations of random programs agree with the host calls made."""

import collections
import random

import jax
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize

from ._compare import OURS, Outcome, observe, precision
from ._interpret import Interpreter
from ._strategy import drawn
from .test_differential import EXAMPLES, RANDOM

pytestmark = pytest.mark.slow

WITHOUT_CALLS = {Status.UNUSED, Status.OPTIMIZED_AWAY, Status.NOT_RUN, Status.NOT_REACHED}


def errors_in_recording(recording, made, ran):
    """Yield contradictions between the recording of a run and the calls `made`, by name."""
    by_name = collections.defaultdict(list)
    for summary in summarize(recording):
        by_name[summary.site.function].append(summary)
    for name in {*made, *by_name}:
        rows = by_name[name]
        if sum(summary.calls for summary in rows) != made[name]:
            yield f"{name} was called {made[name]} times, {rows}"
        expected = [summary.expected for summary in rows]
        if ran and None not in expected and sum(expected) != made[name]:
            yield f"{name} was called {made[name]} times, expected {expected}"
        for summary in rows:
            if summary.calls and summary.status in WITHOUT_CALLS:
                yield f"{name} is {summary.status.words} with {summary.calls} calls"
            if ran and not summary.calls and summary.status is Status.KEPT:
                yield f"{name} is kept without calls"
            whole = ran and summary.status is Status.KEPT and not summary.reason
            if whole and summary.written not in (None, summary.calls):
                yield f"{name} is kept: {summary.calls} calls of {summary.written}"


def errors_in_explanation(explained, made):
    """Yield contradictions between an explanation and the calls `made`, by name."""
    by_name = collections.defaultdict(list)
    for outcome in explained.outcomes:
        by_name[outcome.site.function].append(outcome.compiled)
    for name, compiled in by_name.items():
        if None not in compiled and sum(compiled) != made[name]:
            yield f"{name} was called {made[name]} times, explained: {compiled}"


def errors_of(program, tally):
    """Run a program twice and explain it once; yield contradictions and count statuses."""
    with precision(program.x64):
        interpreter = Interpreter(program, OURS)
        function, state = interpreter.function(), interpreter.start()
        runs: list[Outcome] = []
        for _ in range(2):  # the second run does not compile
            with jaxcb.record() as r:
                runs.append(observe(interpreter, function, state))
            made = collections.Counter(call[0] for call in runs[-1].calls)
            yield from errors_in_recording(r.recording, made, runs[-1].error is None)
            tally.update(outcome.status for outcome in r.recording.outcomes)
            if runs[-1].error is not None:
                return
        if program.jitted:
            fresh = Interpreter(program, OURS)
            yield from errors_in_explanation(jaxcb.explain(fresh.function())(state), made)
            assert fresh.calls == []


@pytest.fixture(scope="module")
def checked():
    """The first contradiction, or an empty string, and how often each status occurred."""
    tally = collections.Counter()
    # With this seed, all required statuses occur.
    numbers = random.SystemRandom() if RANDOM else random.Random(5)
    for _ in range(EXAMPLES):
        program = drawn(random.Random(numbers.getrandbits(32)))
        for error in errors_of(program, tally):
            return f"{error}\n{program}", tally
    jax.clear_caches()
    return "", tally


def test_statuses_and_expected_calls_of_random_programs_match_their_runs(checked):
    assert not checked[0], checked[0]


def test_most_statuses_occurred(checked):
    assert {Status.KEPT, Status.UNUSED, Status.OPTIMIZED_AWAY, Status.HOISTED} <= set(checked[1])
