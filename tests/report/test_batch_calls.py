"""Advice on a vmap that calls a slow host function for each batch element."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    Aval,
    LoweredSite,
    Program,
    Recorder,
    Site,
    VmapLevel,
    record_elements,
)
from jupyter_jaxcb.report import finished, to_html
from tests.interface import loop_advice, summarize, to_text

SITE = Site("pure", "simulate", "<cell>", 3, 0, cell=True, source="simulate(x)")


def recorded(host_ns, elements=12, crossings=1):
    """Return a recording of `crossings`, each with `elements` calls that take `host_ns` in all."""
    recorder = Recorder(clock=lambda: 0)
    recorder.bound(SITE)
    aval = (Aval((elements,), "float32"),)
    levels = (VmapLevel(elements, VMAP_METHODS["sequential"], (True,)),)
    fact = LoweredSite(SITE, Program("jit_f", "cpu"), 0, aval, aval, levels)
    recorder.lowered(fact)
    ends = [place * host_ns // (elements * crossings) for place in range(elements + 1)]
    for _ in range(crossings):
        record_elements(recorder, fact, 1, range(elements), ends)
    return recorder.freeze(cells=("<cell>",))


def batch_calls(host, method, **options):
    f = jax.jit(jax.vmap(jaxcb.pure(host, result="x", vmap_method=method, **options)))
    with jaxcb.record() as r:
        for _ in range(2):
            f(jnp.ones(12)).block_until_ready()
    (summary,) = summarize(r.recording)
    return summary.loop.batch_calls


@pytest.mark.parametrize(("method", "calls"), [("sequential", 2), ("expand_dims", 0)])
def test_calls_of_a_loop_are_counted_by_crossing(method, calls):
    assert batch_calls(lambda x: x, method) == calls


def test_calls_that_run_in_threads_need_no_batch():
    assert batch_calls(lambda x: x, "sequential", executor="threads") == 0


def test_calls_of_another_callback_in_threads_leave_the_advice_as_it_is():
    looped = jaxcb.pure(lambda x: x, result="x")
    spread = jaxcb.pure(lambda x: -x, result="x", executor="threads")
    with jaxcb.record() as r:
        jax.vmap(looped)(jnp.ones(12)).block_until_ready()
        jax.vmap(spread)(jnp.ones(12)).block_until_ready()
    assert [one.loop.batch_calls for one in summarize(r.recording)] == [1, 0]


@pytest.mark.parametrize(("elements", "calls"), [(7, 0), (8, 1)])
def test_few_calls_are_not_worth_a_change(elements, calls):
    (summary,) = summarize(recorded(5_000_000, elements))
    assert summary.loop.batch_calls == calls


@pytest.mark.parametrize(("host_ns", "given"), [(1_200_000, True), (900_000, False)])
def test_advice_is_given_if_the_calls_take_long_and_never_without_times(host_ns, given):
    run = recorded(host_ns, crossings=2)
    advice = "vmap_method='expand_dims' makes 2 calls instead"
    assert (advice in to_text(run)) == given
    (site,) = (finished(one).to_json() for one in summarize(run))
    options = [(option, advice in words, excludes) for option, words, excludes in site["proposals"]]
    assert options == [('vmap_method="expand_dims"', True, ["ordered"])] * given
    assert ("executor= makes them in parallel" in to_text(run)) == given
    assert ("expand_dims" in to_html(run, times=True)) == given
    assert "expand_dims" not in to_text(run, times=False) + to_html(run)


@pytest.mark.kept
def test_calls_without_vmap_beside_those_of_a_loop_are_not_said_to_be_of_batch_elements():
    same = jaxcb.pure(lambda x: x, result="x")

    def program(x):
        return same(x)

    with jaxcb.record() as r:
        jax.vmap(program)(jnp.ones(15)).block_until_ready()
        for _ in range(11):
            program(1.0).block_until_ready()
    hint = "one call for each batch element in 15 of 26 calls"
    assert hint in to_text(r.recording, times=False).splitlines()[0]
    summary = summarize(r.recording)[0]
    slow = summary.loop._replace(host_ns=15_000_000)
    advice = loop_advice(dataclasses.replace(summary, loop=slow))
    assert "vmap_method='expand_dims' makes 1 call instead of 15;" in advice
