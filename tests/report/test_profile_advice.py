"""The sentences about a profile, each with its figure."""

import dataclasses
import re

import numpy as np
import pytest

from jupyter_jaxcb.recording import (
    COMPILED_BEFORE,
    COMPILED_EARLIER,
    PYTHON_OF_JAX,
    VMAP_METHODS,
    Note,
    NoteKind,
    Outcome,
    Status,
    Unknown,
    VmapLevel,
)
from jupyter_jaxcb.report import to_html, to_message
from tests.interface import (
    ROW,
    Aval,
    Compilation,
    Frame,
    Lane,
    LoweredSite,
    Part,
    PartKind,
    Profile,
    Program,
    Recording,
    Site,
    to_text,
)

SECOND = 10**9
SCALAR = (Aval((), "float32"),)
PLACE = Frame("", "model.py", 3)


def part(kind, name="", wall=0, times=0, lowered=-1, place=PLACE):
    return Part(PartKind(kind), name, place, wall, wall, times, lowered)


def recording(
    *parts,
    flavor="pure",
    results=1,
    compilations=(),
    threads=("MainThread",),
    avals=SCALAR,
):
    """A recording with one site of three calls, and a profile of these parts, one second long."""
    rest = SECOND - sum(one.wall_ns for one in parts)
    parts = (*parts, part("idle", wall=rest, place=None)) if rest else parts
    site = Site(flavor, "f", "model.py", 3, 0, cell=False)
    avals = tuple(avals)
    lowered = LoweredSite(site, Program("jit_step", "cpu"), 0, avals, avals * results)
    calls = np.zeros(3, ROW)
    calls["crossing"] = range(3)
    profile = Profile(
        0, SECOND, tuple(parts), (Lane("", ()),), tuple(compilations), 100, 300, 10**6
    )
    return Recording(lowered=(lowered,), calls=calls, threads=threads, profile=profile)


def said(*args, **options):
    """The text of a profile after its table."""
    lines = to_text(recording(*args, **options)).split("\n\n")[0].splitlines()
    return "\n".join(line for line in lines if not line.startswith(" ") and line[0].isalpha())


def test_a_host_function_that_takes_long_is_named_with_calls_and_share():
    text = said(part("host", "f", 8 * SECOND // 10, 900, 0))
    assert "f (model.py:3) took 80 % of 1 s: 900 calls of 889 µs." in text
    assert "f (model.py:3) took" not in said(part("host", "f", SECOND // 20, 900, 0))


def test_crossings_that_take_long_say_which_callback_saves_how_much():
    half = part("crossing", "f", SECOND // 2, 10_000, 0)
    text = said(half)
    assert "Crossings of f (model.py:3) took 50 % of 1 s: 10,000 of 50 µs" in text
    assert "compile='numba' takes 100 ns for each, which saves up to 499 ms." in text
    text = said(half, flavor="jax pure")
    assert "jaxcb.pure_callback takes about 3 µs for each, which saves up to 470 ms." in text
    text = said(half, flavor="jax debug", results=0)
    assert "jaxcb.debug_callback takes about 3 µs for each, which saves up to 470 ms." in text
    assert "saves" not in said(half, flavor="debug")


@pytest.mark.parametrize(
    ("avals", "each"),
    [
        ([Aval((100_000,), "float32")], 83_000),
        ([Aval((100_000,), "int4")], 23_000),
        ([Aval((), "key<fry>")], 3_001),
    ],
)
def test_what_another_callback_takes_depends_on_the_size_of_the_arrays(avals, each):
    half = part("crossing", "f", SECOND // 2, 1000, 0)
    text = said(half, flavor="jax pure", avals=avals)
    expected = 500_000_000 - 1000 * each
    found = re.search(r"saves up to ([0-9]+) ms", text)
    assert abs(int(found[1]) * 10**6 - expected) < 10**6
    assert "saves" not in said(half, flavor="jax pure", avals=[Aval((600_000,), "float32")]), (
        "it would save less than a twentieth"
    )


def test_crossings_of_compiled_functions_have_no_advice_to_compile_them():
    text = said(part("crossing", "f", SECOND // 2, 10_000, 0), threads=("compiled code",))
    assert "Crossings of f" in text
    assert "numba" not in text


def test_parts_whose_runs_take_no_longer_than_the_profiler_have_no_sentence():
    short = [part("crossing", "f", 6 * 10**8, 10**6, 0), part("xla", "add", 4 * 10**8, 10**6)]
    assert "Crossings of f" not in said(*short)
    assert "Its largest operation" not in said(*short)
    longer = [part("crossing", "f", 6 * 10**8, 10**5, 0), part("xla", "add", 4 * 10**8, 10**5)]
    assert "Crossings of f" in said(*longer)
    assert "Its largest operation" in said(*longer)


def looped(
    size, calls, flavor="pure", method="sequential", first=0, made=0, notes=(), parts=(), **facts
):
    """A recording whose calls are those of the elements of a vmap, after `first` without one.

    A crossing made `made` calls, or one for each element.
    """
    parts = parts or (part("host", "f", 9 * SECOND // 10, calls + first, 0),)
    one = recording(*parts, flavor=flavor)
    (plain,) = one.lowered
    level = VmapLevel(size, VMAP_METHODS[method], (True,))
    batched = dataclasses.replace(plain, levels=(level,), **facts)
    outcome = Outcome(plain.site, plain.program, Status.KEPT, notes=tuple(map(Note, notes)))
    rows = np.zeros(calls + first, ROW)
    rows["lowered"][first:] = 1
    rows["crossing"][first:] = np.arange(calls) // (made or size)
    rows["end_ns"] = 9 * SECOND // 10 // len(rows)
    one = dataclasses.replace(one, lowered=(plain, batched), calls=rows, outcomes=(outcome,))
    return to_text(one).split("\n\n")[0]


def test_batch_elements_that_are_called_one_by_one_are_counted_in_calls():
    text = looped(100, 900)
    assert "900 calls of 1 ms. vmap makes one for each batch element." in text
    assert "vmap_method='expand_dims' makes 9 instead; if not, executor= makes" in text
    assert "expand_dims" not in looped(100, 900, method="broadcast_all")
    assert "makes 9 instead; if not, executor= makes" in looped(100, 900, "io")
    assert "'expand_dims' without ordered=True makes 9 instead." in looped(100, 900, "debug")
    assert "makes 9 instead" not in looped(100, 900, "jax io")
    assert "'expand_dims' makes 9 instead." in looped(100, 900, "jax pure", made=1)


def test_crossings_of_jaxs_callback_for_each_batch_element_are_counted_in_crossings_of_a_batch():
    crossings = part("crossing", "f", 8 * SECOND // 10, 900, 0)
    text = looped(100, 900, "jax pure", made=1, parts=(crossings,))
    assert "vmap makes one for each batch element. If the function can take a batch" in text
    assert text.count("'expand_dims' makes 9 instead.") == 1


FINISHED, BRANCHES = NoteKind.FINISHED_ELEMENTS_RUN, NoteKind.ALL_BRANCHES_RUN


@pytest.mark.parametrize("flavor", ["pure", "debug", "buffer", "jax pure"])
def test_calls_of_batch_elements_that_do_not_need_them_are_advised_to_be_masked(flavor):
    also, where = "It may also be called for batch elements that", "leave these out with"
    assert f"{also} have finished the loop; {where}" in looped(100, 900, flavor, notes=[FINISHED])
    assert f"{also} do not take its branch; {where}" in looped(100, 900, flavor, notes=[BRANCHES])
    assert ".where(" not in looped(100, 900, flavor)


@pytest.mark.parametrize(("flavor", "facts"), [("pure", {"masked": True}), ("tap", {})])
def test_calls_that_are_masked_or_cannot_be_have_no_advice_about_a_mask(flavor, facts):
    facts = {**facts, "notes": [FINISHED]}
    assert ".where(" not in looped(100, 900, flavor, **facts)


def test_batches_of_masked_calls_are_counted_by_crossing():
    assert "expand_dims' makes 10 instead" in looped(100, 300, made=30, masked=True)


def test_a_vmap_of_few_elements_among_many_calls_is_not_worth_a_sentence():
    assert "instead" not in looped(4, 4, first=100)
    assert "vmap makes 50 of them, one for each batch element." in looped(50, 50, first=50)


def test_callbacks_whose_result_nobody_needs_can_be_queued():
    slow = part("host", "log", SECOND // 4, 10, 0)
    text = said(slow, flavor="debug", results=0)
    assert "waited 250 ms for log (model.py:3), whose result it does not need. With queued" in text
    assert "it goes on meanwhile, which saves up to 250 ms." in text
    assert "With jaxcb.debug_callback(..., queued=True) it" in said(
        slow, flavor="jax debug", results=0
    )
    assert "queued=True" not in said(slow, flavor="pure")
    assert "queued=True" not in said(slow, flavor="io", results=1)


@pytest.mark.parametrize(("flavor", "options"), [("debug", ["queued=True"]), ("jax debug", [])])
def test_the_site_of_a_registered_callback_proposes_to_queue_it(flavor, options):
    """With the sentence that the profile has, so that a front end finds one by the other."""
    slow = recording(part("host", "log", SECOND // 4, 10, 0), flavor=flavor, results=0)
    _, measured, _ = to_message(slow)
    (site,) = measured["sites"]
    assert [option for option, *_ in site["proposals"]] == options
    assert {words for _, words, _ in site["proposals"]} <= set(measured["profile"]["advice"])


def test_callbacks_of_one_name_wait_for_their_own_crossings():
    """Those of JAX in a program that was compiled before share a call site."""
    lines = [PLACE._replace(line=line) for line in (3, 4)]
    parts = [part("host", "log", SECOND // 4, 10, 0, line) for line in lines]
    parts += [part("crossing", "log", SECOND // 10, 10, 0, lines[0])]
    text = said(*parts, flavor="jax debug", results=0)
    assert "waited 350 ms for log (model.py:3)" in text
    assert "waited 250 ms for log (model.py:4)" in text


def test_a_queue_saves_no_more_than_what_the_program_does_meanwhile():
    text = said(part("host", "log", 8 * SECOND // 10, 10, 0), flavor="debug", results=0)
    assert "waited 800 ms" in text and "saves up to 200 ms." in text
    alone = part("host", "log", 98 * SECOND // 100, 10, 0)
    assert "queued=True" not in said(alone, flavor="debug", results=0)


def test_a_full_queue_says_what_more_room_saves():
    waiting = part("waiting", "log", SECOND // 2, 0, 0)
    text = said(waiting, part("queued", "log", SECOND // 4, 10, 0))
    assert "The program waited 500 ms for room in the queue of log (model.py:3). More room" in text
    assert "with jaxcb.set_queue_limit, saves up to 500 ms." in text
    busy = part("queued", "log", SECOND // 4, 10, 0)._replace(busy_ns=9 * SECOND // 10)
    text = said(waiting, busy)
    assert "took 900 ms, one after the other, so more room would not help." in text
    assert "set_queue_limit" not in text


def test_dispatch_counts_the_programs_that_were_started():
    parts = [
        part("dispatch", "add", SECOND // 2, 5000),
        part("dispatch", "other", SECOND // 10, 8000),
        part("dispatch", "np.asarray(jax.Array)", SECOND // 10, 9000),
        part("dispatch", "shard_args", 10**8, 9000),
    ]
    text = said(*parts)
    assert "Dispatch took 70 % of 1 s: JAX started 13,000 programs, add 5,000 times." in text
    assert "With one jax.jit around them it starts one, which saves up to 700 ms." in text


def test_one_program_that_takes_long_to_start_is_not_one_of_many():
    assert "JAX started" not in said(part("dispatch", "step", 10**6, 1), part("host", wall=10**5))


def test_copies_and_queued_functions_that_take_long_are_named():
    text = said(part("copy", "device_put", SECOND // 2, 10), part("queued", "log", SECOND // 2, 3))
    assert (
        "Copies took 50 % of 1 s: 10 of 50 ms. If you pass an array again, pass jax.device_put"
        in text
    )
    assert "Only queued host functions ran for 50 % of 1 s, mostly log (model.py:3)" in text
    small = said(part("copy", "device_put", SECOND // 2, 100_000))
    assert "100,000 of 5 µs." in small and "again" not in small


def test_python_of_jax_is_told_from_the_start_of_programs():
    own = part("dispatch", PYTHON_OF_JAX, SECOND // 2)
    text = said(own, part("dispatch", "add", SECOND // 50, 100))
    assert "JAX's own Python took 50 % of 1 s, 500 ms of it in model.py:3. It runs" in text
    assert "JAX started" not in text


@pytest.mark.parametrize("why", Unknown)
def test_why_the_profiler_was_off_is_said(why):
    text = said(part("unknown", why, SECOND // 4, place=None))
    assert re.search("was off for 250 ms, and what XLA did then is not known: [^.]+[.]", text)


def test_a_start_of_the_profiler_that_takes_little_of_the_time_is_not_mentioned():
    short = part("unknown", Unknown.STARTING, SECOND // 100, place=None)
    assert "profiler was off" not in said(short)


def test_what_to_do_about_time_without_the_profiler_is_said():
    assert "Profile fewer steps." in said(part("unknown", Unknown.EVENTS, SECOND, place=None))
    assert "stop_trace()" in said(part("unknown", Unknown.OTHER, SECOND, place=None))
    text = said(part("unknown", "?", SECOND))
    assert "was off for 1 s, and what XLA did then is not known." in text


def compiled(*arguments, function=1, name="jit_f", code=1, ms=10):
    avals = tuple(Aval((size,), "float32") for size in arguments)
    weak = (False,) * len(avals)
    return Compilation(Program(name, ""), function, avals, 10**6, ms * 10**6, code=code, weak=weak)


SLOW = part("compilation", "f", SECOND // 2, 2)


def test_a_function_compiled_for_several_shapes_lists_them():
    text = said(SLOW, compilations=[compiled(3, ms=50), compiled(4, ms=50)])
    assert "Compilation took 50 % of 1 s.\n" in text
    assert "jit_f was compiled 2 times (102 ms), for (float32[3]), (float32[4]): argu" in text
    again = [compiled(3, function=n, ms=50) for n in (1, 2)]
    assert "each time for a new function object: define and jit" in said(SLOW, compilations=again)
    both = [compiled(size, function=size, ms=50) for size in (3, 4)]
    text = said(SLOW, compilations=both)
    assert "each time for a new function object: define" in text and "padded" not in text
    assert "was compiled" not in said(SLOW, compilations=[compiled(3, ms=100)])


@pytest.mark.kept
def test_compilation_is_said_to_be_saved_only_by_the_same_functions_in_the_same_process():
    """A script compiles again each time that it runs, and so does a loop that makes functions."""
    text = said(SLOW, compilations=[compiled(3), compiled(3, name="jit_g", code=2)])
    assert (
        "Compilation took 50 % of 1 s. Later calls of the same jitted functions in this process, "
        "with arguments of the same shapes and types, save it."
    ) in text
    anew = [compiled(3, function=n, ms=50) for n in range(10)]
    for compilations in (anew, [*anew, compiled(3, code=2)], [compiled(3), compiled(4)]):
        text = said(SLOW, compilations=compilations)
        assert "Compilation took 50 % of 1 s." in text
        assert "save" not in text


def test_only_shapes_that_padding_makes_equal_are_said_to_be_padded():
    text = said(SLOW, compilations=[compiled(3, ms=50), compiled(3, 3, ms=50)])
    assert "for (float32[3]), (float32[3], float32[3])." in text
    assert "padded" not in text


def test_functions_that_took_longest_to_compile_are_listed():
    ms = [70, 40, 20, 60, 50]
    names = [f"jit_f{n}" for n in range(5)]
    all_of_them = [
        compiled(size, name=name, code=1 + n, ms=ms[n])
        for n, name in enumerate(names)
        for size in (3, 4)
    ]
    text = said(SLOW, compilations=all_of_them)
    assert [name for name in names if f"{name} was compiled" in text] == [
        "jit_f0",
        "jit_f3",
        "jit_f4",
    ]
    assert text.index("jit_f3 was") < text.index("jit_f4 was")


def test_programs_of_jax_itself_are_one_sentence():
    own = [compiled(n, name="jit_sin", code=0, ms=30) for n in range(3)]
    text = said(SLOW, compilations=[*own, compiled(3, name="jit_iota", code=0, ms=30)])
    assert "functions of JAX, such as sin (3 times) and iota, are 4 programs (124 ms)" in text
    assert "was compiled" not in text


def test_a_program_with_callbacks_is_no_function_of_jax():
    own = [compiled(n, name="jit_sin", code=0, ms=60) for n in range(2)]
    step = compiled(3, code=0, ms=60)._replace(program=Program("jit_step", "cpu"))
    assert "such as sin (2 times), are 2 programs" in said(SLOW, compilations=[*own, step])


def test_long_crossings_name_what_they_hand_over():
    big = [Aval((5_000_000,), "float32")]
    text = said(part("crossing", "f", SECOND // 2, 20, 0), avals=big)
    assert "20 of 25 ms, without the function itself. Each hands over float32[5000000] and " in text
    assert "numba" not in text


def test_long_crossings_of_small_arrays_waited_for_something_else():
    text = said(part("crossing", "f", SECOND // 2, 10, 0))
    assert "10 of 50 ms, without the function itself. Arrays of this size are copied soon" in text
    assert "waited for the GIL or for a CPU" in text


def test_crossings_without_a_known_function_may_have_calls_that_the_log_had_no_room_for():
    known = dataclasses.replace(recording(part("crossing", "f", SECOND // 2, 10, 0)), overflow=7)
    assert "10 of 50 ms, without the function itself." in to_text(known)
    unknown = dataclasses.replace(recording(part("crossing", "g", SECOND // 2, 10)), overflow=7)
    assert "50 ms, with calls of the function that did not fit into the log.\n" in to_text(unknown)
    assert "7 host calls did not fit into the log: only the sum of their time is " in to_text(known)


def test_profile_that_cost_much_says_so():
    cheap, costly = recording(), recording()
    costly = dataclasses.replace(costly, profile=costly.profile._replace(events=10**6))
    text = to_text(costly)
    assert "(30 %), and 1 ms to read.\nWithout the profiler, the block is faster, and" in text
    assert "Without the profiler" not in to_text(cheap)


@pytest.mark.parametrize(
    ("known", "cost"),
    [
        ({}, "60"),
        ({"source": f"f {COMPILED_BEFORE}"}, "175"),
        ({"file": COMPILED_EARLIER, "line": 0}, "175"),
    ],
)
def test_what_it_cost_to_observe_jaxs_own_callbacks_is_said(known, cost):
    one = recording(part("crossing", "f", SECOND // 2, 1000, 0), flavor="jax pure")
    (fact,) = one.lowered
    site = dataclasses.replace(fact.site, **known)
    text = to_text(dataclasses.replace(one, lowered=(dataclasses.replace(fact, site=site),)))
    assert f"To observe JAX's own callbacks took about {cost} ms of their crossings." in text
    assert ("Without the profiler" in text) == (cost == "175")


def test_an_operation_is_named_if_most_of_the_time_is_spent_in_programs():
    text = said(part("xla", "dot_general", 9 * SECOND // 10, 10))
    assert "XLA took 90 % of 1 s, callbacks 0 %." in text
    assert "Its largest operation is dot_general (model.py:3): 900 ms." in text


def test_python_and_waiting_are_named_with_their_line():
    text = said(part("python", "load", SECOND // 2), part("idle", "", SECOND // 2))
    assert "Python outside of JAX took 50 % of 1 s, 500 ms of it in model.py:3." in text
    assert "The block's thread was idle for 50 % of 1 s, 500 ms of it in model.py:3: it s" in text


def test_bar_headline_and_cost_are_in_the_text():
    text = to_text(recording(part("host", "f", SECOND // 2, 3, 0)))
    head, bar, *_ = text.splitlines()
    assert head == "1 s: 50 % host functions, 50 % idle"
    assert bar == "█" * 36 + "·" * 36
    assert "Profiling: 100 events took about 30 µs of this time (<0.1 %), and 1 ms to read." in text


def test_text_without_times_has_no_profile():
    profiled = recording(part("host", "f", SECOND // 2, 3, 0))
    assert "host functions" not in to_text(profiled, times=False)


def test_names_are_escaped_in_html():
    html = to_html(recording(part("host", "<b>", SECOND // 2, 3, 0)), times=True)
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_names_are_on_one_line_and_not_too_long():
    text = to_text(recording(part("host", "a\nb\x1b" + 10_000 * "c", SECOND // 2, 3, 0)))
    assert r"a\nb\x1bccc" in text
    assert max(map(len, text.splitlines())) < 250
