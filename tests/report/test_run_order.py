"""Reports that show times name the unordered callbacks that did not run in program order."""

import itertools
import re

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    Aval,
    LoweredSite,
    Outcome,
    Program,
    Recorder,
    Site,
    Status,
    VmapLevel,
    record_call,
)
from jupyter_jaxcb.report import MIME_TYPE, summarize, to_html, to_mimebundle, to_text

PROGRAM = Program("jit_f", "cpu", 1)
WORDS = "ran before"


def fact(index, flavor="io", program=PROGRAM, line=None, levels=(), shard=None):
    """Return callback number `index` of the program, by default on line 10 + index of m.py."""
    site = Site(flavor, f"f{index}", "m.py", line or 10 + index, 0, cell=False)
    operands = tuple(Aval((level.size,), "float32") for level in levels[:1])
    return LoweredSite(site, program, index, operands, (), levels, shard=shard)


def note_outcomes(recorder, facts, compiled):
    for lowered in facts:
        if lowered.program is not None:
            index = lowered.index
            recorder.add_outcome(
                Outcome(lowered.site, lowered.program, Status.KEPT, index=index, compiled=compiled)
            )


def recorded(facts, order):
    """Return a recording of calls of `facts` in this order, one clock tick apart."""
    recorder = Recorder(clock=itertools.count(100, 10).__next__)
    for lowered in facts:
        recorder.lowered(lowered)
    note_outcomes(recorder, facts, compiled=1)
    for place in order:
        record_call(recorder, facts[place], 1, recorder.clock(), recorder.clock())
    return recorder.freeze()


def sentences(recording):
    """Return the sentences in the text, after checking that the metadata has the same."""
    found = [line.strip() for line in to_text(recording).splitlines() if WORDS in line]
    data, metadata = to_mimebundle(recording)
    assert metadata[MIME_TYPE].get("out_of_order", []) == found
    assert WORDS not in str(data) + to_html(recording) + to_text(recording, times=False)
    return found


@pytest.mark.parametrize("flavors", [("io", "io"), ("debug", "debug"), ("io", "debug")])
def test_two_calls_in_reverse_order_are_named_with_advice(flavors):
    facts = [fact(index, flavor) for index, flavor in enumerate(flavors)]
    assert sentences(recorded(facts, [1, 0])) == [
        "m.py:11 ran before m.py:10 in 1 of 1 run; pass ordered=True to keep program order"
    ]


def test_two_calls_in_program_order_are_not_named():
    assert sentences(recorded([fact(0), fact(1)], [0, 1, 0, 1])) == []


def test_runs_out_of_order_are_counted():
    (sentence,) = sentences(recorded([fact(0), fact(1)], [0, 1, 1, 0, 1, 0]))
    assert "in 2 of 3 runs" in sentence


def test_program_order_is_the_order_of_lowering_not_of_lines():
    (sentence,) = sentences(recorded([fact(0, line=20), fact(1, line=5)], [1, 0]))
    assert sentence.startswith("m.py:5 ran before m.py:20")
    assert sentences(recorded([fact(0, line=20), fact(1, line=5)], [0, 1])) == []


def test_program_order_does_not_depend_on_when_callbacks_are_noted():
    (sentence,) = sentences(recorded([fact(1), fact(0)], [0, 1]))
    assert sentence.startswith("m.py:11 ran before m.py:10")
    assert sentences(recorded([fact(1), fact(0)], [1, 0])) == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_three_calls_are_named_unless_they_ran_in_order(order):
    facts = [fact(index) for index in range(3)]
    place = {index: order.index(index) for index in range(3)}
    late = {n: [m for m in range(n) if place[n] < place[m]] for n in range(3)}  # overtaken ones
    expected = [f"m.py:{10 + n} ran before m.py:{10 + max(m)}" for n, m in late.items() if m]
    assert [s.partition(" in ")[0] for s in sentences(recorded(facts, order))] == expected
    assert bool(expected) == (order != (0, 1, 2))


def test_callbacks_of_two_programs_have_no_order():
    other = Program("jit_f", "cpu", 2)
    assert sentences(recorded([fact(0), fact(1, program=other)], [1, 0])) == []


def test_eager_calls_have_no_order():
    assert sentences(recorded([fact(0, program=None), fact(1, program=None)], [1, 0])) == []


def test_pure_callbacks_elements_and_shards_are_not_compared():
    level = VmapLevel(1, VMAP_METHODS["sequential"], (True,))
    for other in (fact(1, "pure"), fact(1, levels=(level,)), fact(1, shard=0)):
        assert sentences(recorded([fact(0), other], [1, 0])) == []


def test_callbacks_with_different_numbers_of_calls_are_not_compared():
    assert sentences(recorded([fact(0), fact(1)], [1, 0, 0])) == []


def test_two_programs_are_reported_separately():
    other = Program("jit_g", "cpu", 2)
    facts = [fact(0), fact(1), fact(0, program=other, line=30), fact(1, program=other, line=31)]
    found = sentences(recorded(facts, [1, 0, 3, 2]))
    assert [s.partition(" in ")[0] for s in found] == [
        "m.py:11 ran before m.py:10", "m.py:31 ran before m.py:30",
    ]  # fmt: skip


def test_callback_in_a_branch_does_not_hide_the_order_of_its_neighbors():
    recorder = Recorder(clock=itertools.count(100, 10).__next__)
    facts = [fact(0), fact(1), fact(2)]
    for lowered in facts:
        recorder.lowered(lowered)
    note_outcomes(recorder, [facts[0], facts[2]], compiled=1)
    note_outcomes(recorder, facts[1:2], compiled=None)
    for place in (2, 0):
        record_call(recorder, facts[place], 1, recorder.clock(), recorder.clock())
    (sentence,) = sentences(recorder.freeze())
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


def log(x):
    pass


def test_two_branches_of_one_cond_have_no_order():
    def yes(x):
        jaxcb.debug_callback(log, x)
        return x

    def no(x):
        jaxcb.debug_callback(log, x)
        return x

    f = jax.jit(lambda x: jax.lax.cond(x > 0, yes, no, x))
    found = []
    for values in ((1.0, -1.0), (-1.0, 1.0)):
        with jaxcb.record() as recorded:
            for value in values:
                f(value).block_until_ready()
                jax.effects_barrier()
        found += sentences(recorded.recording)
    assert found == []


def test_calls_of_a_loop_do_not_count_as_runs():
    """The test passes one run of a loop of three to the recorder by hand."""
    recorder = Recorder()
    facts = [fact(0), fact(1)]
    for lowered in facts:
        recorder.lowered(lowered)
    note_outcomes(recorder, facts, compiled=3)
    recorder.start_counting_runs(PROGRAM)
    recorder.ran(PROGRAM)
    for step, place in enumerate([1, 0] * 3):
        record_call(recorder, facts[place], 1, step, step)
    assert sentences(recorder.freeze()) == []


def test_two_callbacks_on_one_line_are_distinguished():
    def site(column):
        return Site("io", "f", "m.py", 10, column, cell=False)

    facts = [LoweredSite(site(4 * index), PROGRAM, index, (), ()) for index in range(2)]
    (sentence,) = sentences(recorded(facts, [1, 0]))
    assert sentence.startswith("m.py:10:5 ran before m.py:10:1 ")


def test_two_callbacks_at_one_column_are_distinguished_by_their_names():
    """Examples are a loop over callbacks, or a callback and its finite differences."""
    facts = [
        LoweredSite(Site("io", name, "m.py", 10, 4, cell=False), PROGRAM, index, (), ())
        for index, name in enumerate(["f", "g"])
    ]
    (sentence,) = sentences(recorded(facts, [1, 0]))
    assert sentence.startswith("m.py:10:5 g ran before m.py:10:5 f ")


def test_callback_that_is_in_a_program_twice_is_not_compared():
    again = LoweredSite(fact(0).site, PROGRAM, 2, (), ())
    facts = [fact(0), fact(1), again]
    assert sentences(recorded(facts, [0, 1, 2])) == sentences(recorded(facts, [2, 1, 0])) == []


def test_expected_calls_are_unknown_if_the_calls_are_not_a_multiple_of_those_of_a_run():
    recorder = Recorder()
    recorder.lowered(lowered := fact(0))
    note_outcomes(recorder, [lowered], compiled=2)
    for _ in range(3):
        record_call(recorder, lowered, 1, 0, 1)
    (summary,) = summarize(recorder.freeze())
    assert (summary.calls, summary.expected) == (3, None)
