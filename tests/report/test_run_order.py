"""Reports that show times name the unordered callbacks that did not run in program order."""

import itertools
import re

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import LoweredSite, Outcome, Program, Recorder, Site, Status
from tests.interface import record_call, to_html, to_text

from ._several import data_of, f32, level

WORDS = "ran before"


def fact(index, flavor="io", line=None, levels=(), shard=None):
    """Return callback number `index` of a program, by default on line 10 + index of m.py."""
    site = Site(flavor, f"f{index}", "m.py", line or 10 + index, 0, cell=False)
    operands, program = tuple(f32(level.size) for level in levels), Program("jit_f", "cpu", 1)
    return LoweredSite(site, program, index, operands, (), levels, shard=shard)


def sentences(recording):
    """Return the sentences in the text, after checking that the metadata has the same."""
    found = [line.strip() for line in to_text(recording).splitlines() if WORDS in line]
    data, measured = data_of(recording)
    assert measured.get("out_of_order", []) == found
    assert WORDS not in str(data) + to_html(recording) + to_text(recording, times=False)
    return found


def said(facts, order, in_branch=()):
    """Return the sentences about calls of `facts` in this order, one clock tick apart."""
    recorder = Recorder(clock=itertools.count(100, 10).__next__)
    for one in facts:
        recorder.lowered(one)
        compiled = None if one in in_branch else 1
        recorder.add_outcome(
            Outcome(one.site, one.program, Status.KEPT, index=one.index, compiled=compiled)
        )
    for number in order:
        record_call(recorder, facts[number], 1, recorder.clock(), recorder.clock())
    return sentences(recorder.freeze())


@pytest.mark.parametrize("flavors", [("io", "io"), ("debug", "debug"), ("io", "debug")])
def test_two_calls_in_reverse_order_are_named_with_advice(flavors):
    assert said(list(map(fact, range(2), flavors)), [1, 0]) == [
        "m.py:11 ran before m.py:10 in 1 of 1 run; pass ordered=True to keep program order"
    ]


def test_program_order_is_the_order_of_lowering_not_of_lines():
    facts = [fact(0, line=20), fact(1, line=5)]
    assert said(facts, [1, 0])[0].startswith("m.py:5 ran before m.py:20")
    assert said(facts, [0, 1, 0, 1]) == []


def test_pure_callbacks_elements_and_shards_are_not_compared():
    looped = (level(1, "sequential", (True,)),)
    for other in (fact(1, "pure"), fact(1, levels=looped), fact(1, shard=0)):
        assert said([fact(0), other], [1, 0]) == []


def test_callback_in_a_branch_does_not_hide_the_order_of_its_neighbors():
    facts = [fact(0), fact(1), fact(2)]
    (sentence,) = said(facts, [2, 0], in_branch=facts[1:2])
    assert sentence.startswith("m.py:12 ran before m.py:10")


@pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])
def test_reported_order_is_the_order_the_host_functions_saw(ordered):
    """XLA may make the second call first, while it still computes the operand of the other."""
    seen = []

    @jax.jit
    def f(x):
        y = x
        for _ in range(20):
            y = jnp.sin(y @ x) / 100
        jaxcb.debug_callback(lambda _: seen.append("first"), y[0, 0], ordered=ordered)
        jaxcb.debug_callback(lambda _: seen.append("second"), x[0, 0], ordered=ordered)
        return y

    with jaxcb.record() as recorded:
        for _ in range(3):
            f(jnp.ones((200, 200))).block_until_ready()
            jax.effects_barrier()
    runs = [tuple(seen[n : n + 2]) for n in range(0, 6, 2)]
    assert {frozenset(run) for run in runs} == {frozenset(("first", "second"))}
    swapped = runs.count(("second", "first"))
    found = [re.search(r"in (\d) of (\d) runs", s).groups() for s in sentences(recorded.recording)]
    assert found == ([(str(swapped), "3")] if swapped else [])
    assert not (ordered and swapped)
