"""What a recording says of random programs agrees with the host calls that they made."""

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


def wrong_in(recording, made, ran):
    """What the recording says of a run that the calls `made`, by name, do not bear out."""
    by_name = collections.defaultdict(list)
    for summary in summarize(recording):
        by_name[summary.site.function].append(summary)
    for name in {*made, *by_name}:
        own = by_name[name]
        if sum(summary.calls for summary in own) != made[name]:
            yield f"{name} was called {made[name]} times, {own}"
        expected = [summary.expected for summary in own]
        if ran and None not in expected and sum(expected) != made[name]:
            yield f"{name} was called {made[name]} times, expected {expected}"
        for summary in own:
            if summary.calls and summary.status in WITHOUT_CALLS:
                yield f"{name} is {summary.status.words} with {summary.calls} calls"
            if ran and not summary.calls and summary.status is Status.KEPT:
                yield f"{name} is live without calls"
            whole = ran and summary.status is Status.KEPT and not summary.reason
            if whole and summary.written not in (None, summary.calls):
                yield f"{name} is kept: {summary.calls} calls of {summary.written}"


def wrong_ahead(explained, made):
    """What was said ahead of time that the calls of the first run do not bear out."""
    by_name = collections.defaultdict(list)
    for outcome in explained.outcomes:
        by_name[outcome.site.function].append(outcome.compiled)
    for name, compiled in by_name.items():
        if None not in compiled and sum(compiled) != made[name]:
            yield f"{name} was called {made[name]} times, explain said {compiled}"


def look_at(program, tally):
    """Runs a program twice and explains it once; what was wrong, in words."""
    with precision(program.x64):
        interpreter = Interpreter(program, OURS)
        function, state = interpreter.function(), interpreter.start()
        runs: list[Outcome] = []
        for _ in range(2):  # the second time it is compiled already
            with jaxcb.record() as r:
                runs.append(observe(interpreter, function, state))
            made = collections.Counter(call[0] for call in runs[-1].calls)
            yield from wrong_in(r.recording, made, runs[-1].error is None)
            tally.update(outcome.status for outcome in r.recording.outcomes)
            if runs[-1].error is not None:
                return
        if program.jitted:
            unseen = Interpreter(program, OURS)
            yield from wrong_ahead(jaxcb.explain(unseen.function())(state), made)
            assert unseen.calls == []


@pytest.fixture(scope="module")
def looked_at():
    """The first program of which something wrong was said, and how often each status was."""
    tally = collections.Counter()
    # Of this seed's programs, some have each of the statuses that are looked for.
    numbers = random.SystemRandom() if RANDOM else random.Random(5)
    for _ in range(EXAMPLES):
        program = drawn(random.Random(numbers.getrandbits(32)))
        for wrong in look_at(program, tally):
            return f"{wrong}\n{program}", tally
    jax.clear_caches()
    return "", tally


def test_statuses_and_expected_calls_of_random_programs_are_those_of_their_runs(looked_at):
    assert not looked_at[0], looked_at[0]


def test_most_statuses_were_met(looked_at):
    assert {Status.KEPT, Status.UNUSED, Status.OPTIMIZED_AWAY, Status.HOISTED} <= set(looked_at[1])
