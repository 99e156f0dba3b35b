"""Compare explanations with recorded runs and with the number of calls the host functions count.

A call site in this file means that the explained function is itself a callback, called here at one
line for the explanation and at another for the run. Such sites are compared without their line.
"""

import collections
import concurrent.futures
import functools

import jax

import jupyter_jaxcb as jaxcb
from tests.interface import summarize


def in_new_thread(test):
    """Run a test in a separate thread, because JAX keeps thread-local state that affects it."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(test, *args, **kwargs).result()

    return run


def facts(outcome):
    """Return the parts of an outcome that an explanation and a run have in common."""
    site = outcome.site
    position = (0, 0) if site.file == __file__ else (site.line, site.column)
    return (
        site.function,
        *position,
        str(outcome.status),
        outcome.written,
        outcome.compiled,
        outcome.instructions,
        outcome.reason,
        outcome.call_paths,
        outcome.unrolled,
        outcome.notes,
    )


def sorted_facts(recording):
    """Return the facts of all outcomes, sorted."""
    return sorted(map(facts, recording.outcomes), key=repr)


def lowered(recording):
    """Return the operands, results and vmap levels of every lowered site, sorted by function.

    Shards are left out, because only a run knows what each device got.
    """
    return sorted(
        (fact.site.function, fact.operands, fact.results, fact.levels, fact.gathered_bytes)
        for fact in recording.lowered
        if fact.shard is None
    )


def explain_only(made, hosts):
    """Return the explanation of a function, and assert that no host function is called.

    Args:
        made: the function, its arguments and, optionally, its keyword arguments.
        hosts: the host functions, which count their calls.
    """
    function, args, *kwargs = made
    before = hosts.calls.copy()
    recording = jaxcb.explain(function)(*args, **(kwargs[0] if kwargs else {}))
    jax.effects_barrier()
    assert +hosts.calls == +before, "explain called a host function"
    assert recording.ahead
    assert len(recording) == 0
    assert not recording.runs
    return recording


def run(made, hosts):
    """Return the recording of the first run of the jitted function, and its host calls by name."""
    function, args, *kwargs = made
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    hosts.calls.clear()
    with jaxcb.record() as recorded:
        jax.block_until_ready(jitted(*args, **(kwargs[0] if kwargs else {})))
        jax.effects_barrier()
    return recorded.recording, +hosts.calls


def check_calls(explained, calls):
    """Assert that the host functions were called as often as explained."""
    expected = collections.defaultdict(list)
    for outcome in explained.outcomes:
        expected[outcome.site.function].append(outcome.compiled)
    for function, counts in expected.items():
        if None not in counts:
            assert sum(counts) == calls[function], function
    assert set(calls) <= set(expected), "called, but missing in the explanation"


def check(explained, recorded, calls):
    """Assert that the explanation equals the recording of the run and predicts its calls."""
    assert sorted_facts(explained) == sorted_facts(recorded)
    assert lowered(explained) == lowered(recorded)
    check_calls(explained, calls)
    check_summaries(explained, recorded, calls)


def check_summaries(explained, recorded, calls):
    """Assert that reports of the explanation and of the run agree on sites, calls and texts."""
    ahead, after = by_site(explained), by_site(recorded)
    assert ahead.keys() == after.keys()
    for site, predicted in ahead.items():
        actual = after[site]
        assert predicted.ahead, site
        assert predicted.calls == 0, site
        assert predicted.expected in (None, actual.calls), site
        if str(actual.status) not in ("not_reached", "not_run"):
            assert predicted.status == actual.status, site
            assert (predicted.reason, predicted.advice) == (actual.reason, actual.advice), site
        assert bool(predicted.reason) == (
            str(predicted.status) != "kept" or bool(predicted.elided)
        ), site


def by_site(recording):
    """Return the summaries by site, without the sites in this file."""
    return {
        (s.site.function, 0 if s.site.file == __file__ else s.site.line, s.site.column): s
        for s in summarize(recording)
        if s.site.file != __file__
    }
