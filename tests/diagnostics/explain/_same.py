"""Compare explanations with recorded runs and with the counts of the host functions.

The module's own code makes no callbacks, so that a site in it stands for the user's call of the
asked function itself; such sites are compared without their line.
"""

import ast
import collections
import concurrent.futures
import functools
import inspect
import textwrap

import jax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize


def alone(test):
    """Run a test in a separate thread, because JAX keeps thread-local state that affects it."""

    @functools.wraps(test)
    def run(*given, **named):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(test, *given, **named).result()

    return run


def returns(program):
    """Whether a program of the battery of statuses returns a function, or runs by itself."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(program))).body
    return any(isinstance(statement, ast.Return) for statement in tree.body)


def facts(outcome):
    """The parts of an outcome that depend on neither the function object nor the jit around it."""
    site = outcome.site
    place = (0, 0) if site.file == __file__ else (site.line, site.column)
    return (
        site.function,
        *place,
        str(outcome.status),
        outcome.written,
        outcome.compiled,
        outcome.traced_paths,
        outcome.instructions,
        outcome.reason,
        outcome.call_paths,
        outcome.unrolled,
        outcome.notes,
    )


def reported(recording):
    """The facts of all outcomes, sorted."""
    return sorted(map(facts, recording.outcomes), key=repr)


def lowered(recording):
    """What every site that was lowered is given and results, by function.

    What each of several devices got is known of a run only.
    """
    return sorted(
        (fact.site.function, fact.operands, fact.results, fact.levels, fact.gathered_bytes)
        for fact in recording.lowered
        if fact.shard is None
    )


def ask(made, hosts):
    """Explain a function with its arguments, checking that no host function is called."""
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
    """The recording of the first run of the jitted function, and the calls it made."""
    function, args, *kwargs = made
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    hosts.calls.clear()
    with jaxcb.record() as recorded:
        jax.block_until_ready(jitted(*args, **(kwargs[0] if kwargs else {})))
        jax.effects_barrier()
    return recorded.recording, +hosts.calls


def check_calls(explained, calls):
    """Exactly the expected calls were made."""
    promised = collections.defaultdict(list)
    for outcome in explained.outcomes:
        promised[outcome.site.function].append(outcome.compiled)
    for function, counts in promised.items():
        if None not in counts:
            assert sum(counts) == calls[function], function
    assert set(calls) <= set(promised), "called, and not a word of it"


def check(explained, recorded, calls):
    """The explanation equals what the run shows."""
    assert reported(explained) == reported(recorded)
    assert lowered(explained) == lowered(recorded)
    check_calls(explained, calls)
    check_summaries(explained, recorded, calls)


def check_summaries(explained, recorded, calls):
    """The report of the explanation equals that of the run: sites, calls and texts."""
    ahead, after = by_site(explained), by_site(recorded)
    assert ahead.keys() == after.keys()
    for site, one in ahead.items():
        other = after[site]
        assert one.ahead, site
        assert one.calls == 0, site
        assert one.expected in (None, other.calls), site
        if str(other.status) not in ("not_reached", "not_run"):
            assert one.status == other.status, site
            assert (one.reason, one.advice) == (other.reason, other.advice), site
        assert bool(one.reason) == (str(one.status) != "kept" or bool(one.elided)), site


def by_site(recording):
    return {
        (s.site.function, 0 if s.site.file == __file__ else s.site.line, s.site.column): s
        for s in summarize(recording)
        if s.site.file != __file__
    }
