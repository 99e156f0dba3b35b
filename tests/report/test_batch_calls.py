"""Advice on a vmap that calls a slow host function for each batch element."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import (
    LoweredSite,
    Program,
    Recorder,
    Site,
    record_elements,
    summarize,
    to_html,
    to_message,
    to_text,
)

from ._several import f32, level


@pytest.mark.parametrize(("host_ns", "given"), [(1_200_000, True), (900_000, False)])
def test_advice_is_given_if_the_calls_take_long_and_never_without_times(host_ns, given):
    site = Site("pure", "simulate", "<cell>", 3, 0, cell=True, source="simulate(x)")
    recorder, looped = Recorder(clock=lambda: 0), (level(12, "sequential", (True,)),)
    fact = LoweredSite(site, Program("jit_f", "cpu"), 0, (f32(12),), (f32(12),), looped)
    recorder.lowered(fact)
    for _ in range(2):
        record_elements(recorder, fact, 1, range(12), range(0, 13 * host_ns // 24, host_ns // 24))
    run = recorder.freeze(cells=("<cell>",))
    advice = "vmap_method='expand_dims' makes 2 calls instead"
    assert (advice in to_text(run)) == given
    assert ("executor= makes them in parallel" in to_text(run)) == given
    assert ("expand_dims" in to_html(run, times=True)) == given
    assert "expand_dims" not in to_text(run, times=False) + to_html(run)
    (measured,) = to_message(run)[1]["sites"]
    options = [(option, advice in words, not_with) for option, words, not_with
               in measured["proposals"]]  # fmt: skip
    assert options == [('vmap_method="expand_dims"', True, ["ordered"])] * given


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
    advice = dataclasses.replace(summary, loop=slow).loop_advice
    assert "vmap_method='expand_dims' makes 1 call instead of 15;" in advice
