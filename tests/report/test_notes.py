"""Notes on a call site: repeated compilation, non-finite results, programs that are not cached."""

import pytest

from jupyter_jaxcb.recording import (
    Aval,
    Compilation,
    LoweredSite,
    Outcome,
    Program,
    Recorder,
    Site,
    Status,
    record_call,
)
from jupyter_jaxcb.report import MIME_TYPE, summarize, to_html, to_mimebundle, to_text

SITE = Site("pure", "f", "m.py", 3, 0, cell=False)
OTHER = Site("pure", "g", "m.py", 9, 0, cell=False)
ANOTHER = "each time for a new function object"


def vector(size):
    return Aval((size,), "float32")


class Builder:
    """Builds a recording of programs, numbered in the order they are added."""

    def __init__(self):
        self.recorder = Recorder()
        self.number = 0

    def program(self, name="jit_f", site=SITE, function=1, arguments=(), **facts):
        self.number += 1
        program = Program(name, "cpu", self.number)
        self.recorder.add_compilation(
            Compilation(program, function, tuple(arguments), 5, 6, **{"code": 1, **facts})
        )
        self.recorder.lowered(LoweredSite(site, program, 0, (), ()))
        self.recorder.add_outcome(Outcome(site, program, Status.KEPT, index=0, compiled=1))
        return self

    def notes(self, environment=None):
        recording = self.recorder.freeze(environment=environment)
        return {summary.site: summary.notes for summary in summarize(recording)}


def test_single_compilation_has_no_note():
    assert Builder().program().notes() == {SITE: ()}


def test_shapes_of_repeated_compilations_are_named():
    builder = (
        Builder().program(arguments=[vector(3)]).program(arguments=[vector(4), Aval((), "int8")])
    )
    assert builder.notes() == {
        SITE: ("jit_f was compiled 2 times, for (float32[3]), (float32[4], int8[])",)
    }


def test_three_shapes_are_named_and_the_others_counted():
    builder = Builder()
    for size in range(5):
        builder.program(arguments=[vector(size)])
    (note,) = builder.notes()[SITE]
    assert note.endswith("5 times, for (float32[0]), (float32[1]), (float32[2]), 2 more")


def test_of_many_arguments_only_those_that_differ_are_named():
    builder, same = Builder(), [vector(7)] * 9
    for size in (3, 4):
        builder.program(arguments=[*same, vector(size)])
    (note,) = builder.notes()[SITE]
    assert note.endswith(
        "2 times, for (float32[3]), (float32[4]); the other arguments are the same"
    )


NUMBER = Aval((), "float32")


def test_argument_that_was_weakly_typed_once_is_named_with_the_way_out():
    given = {"arguments": [vector(3), NUMBER], "names": ("v", "params['w']")}
    builder = Builder().program(**given, weak=(False, True)).program(**given, weak=(False, False))
    (note,) = builder.notes()[SITE]
    assert note == (
        "jit_f was compiled 2 times, because params['w'] was weakly typed (as Python numbers are) "
        "the first time but not the second: pass jnp.asarray(params['w'], jnp.float32) or "
        "np.float32(params['w'])"
    )


@pytest.mark.parametrize(
    ("weak", "names", "words"),
    [
        ([(0,), (1,)], ["x"], "x was weakly typed (as Python numbers are) the second time but not"),
        ([(0,), (1,)], [], "argument 1 was weakly typed (as Python numbers are) the second time"),
        ([(0, 1), (1, 0)], ["x", "y"], "x and y were weakly typed (as Python numbers are) not each "
         "time: pass each with its dtype, as in jnp.asarray(x, jnp.float32)"),
        ([(0, 0), (1, 0), (0, 1)], ["x", "y"], "x and y were weakly typed (as Python numbers are)"),
        ([(0,) * 5, (1,) * 5], list("abcde"), "a, b, c and 2 more were weakly typed"),
    ],
)  # fmt: skip
def test_arguments_that_were_not_always_weakly_typed_are_named(weak, names, words):
    builder = Builder()
    for each in weak:
        builder.program(arguments=[NUMBER] * len(each), weak=tuple(map(bool, each)), names=names)
    (note,) = builder.notes()[SITE]
    assert f", because {words}" in note


def test_array_that_was_weakly_typed_once_is_no_numpy_scalar():
    builder = Builder().program(arguments=[vector(3)], weak=(True,), names=("x",))
    (note,) = builder.program(arguments=[vector(3)], weak=(False,)).notes()[SITE]
    assert note.endswith("pass jnp.asarray(x, jnp.float32)")


def test_weak_types_are_listed_beside_other_shapes():
    builder = Builder().program(arguments=[NUMBER], weak=(True,))
    builder.program(arguments=[NUMBER], weak=(False,)).program(arguments=[vector(3)], weak=(False,))
    (note,) = builder.notes()[SITE]
    assert note.endswith("3 times, for (weak float32[]), (float32[]), (float32[3])")


def test_old_files_do_not_say_whether_an_argument_was_weakly_typed():
    notes = Builder().program(arguments=[NUMBER]).program(arguments=[NUMBER]).notes()
    assert notes == {SITE: ("jit_f was compiled 2 times",)}


def test_new_function_object_each_time_is_noted_with_advice():
    builder = Builder().program(function=1).program(function=2).program(function=3)
    (note,) = builder.notes()[SITE]
    assert note.startswith(f"jit_f was compiled 3 times, {ANOTHER}: ")
    assert "outside the loop" in note


def test_one_function_compiled_twice_for_equal_arguments_says_what_else_can_differ():
    (note,) = Builder().program(function=1).program(function=1).notes()[SITE]
    assert note.startswith("jit_f was compiled 2 times, for arguments of the same shapes: sta")
    assert "static arguments" in note


def test_compilations_of_which_only_some_are_for_equal_arguments_are_only_counted():
    builder = Builder().program(arguments=[vector(3)], weak=(False,))
    for size in (3, 4):
        builder.program(arguments=[vector(size)], weak=(False,))
    assert builder.notes() == {SITE: ("jit_f was compiled 3 times",)}


def test_unknown_functions_compiled_twice_for_equal_arguments_are_only_counted():
    notes = Builder().program(function=0).program(function=0).notes()
    assert notes == {SITE: ("jit_f was compiled 2 times",)}


def test_programs_with_different_names_are_not_counted_together():
    assert Builder().program("jit_f", function=1).program("jit_g", function=2).notes() == {SITE: ()}


def test_functions_of_one_name_are_not_counted_together():
    assert Builder().program(function=1).program(function=2, code=2).notes() == {SITE: ()}


def test_note_is_shown_only_at_the_sites_of_its_program():
    builder = Builder().program(site=OTHER, name="jit_g")
    builder.program(arguments=[vector(3)]).program(arguments=[vector(4)])
    assert builder.notes()[OTHER] == ()
    assert len(builder.notes()[SITE]) == 1


def test_notes_on_a_program_are_at_the_first_of_its_sites():
    builder, program = Builder(), {"not_cached": True}
    for size in (3, 4):
        builder.program(site=OTHER, arguments=[vector(size)], **program)
        builder.recorder.add_outcome(
            Outcome(SITE, Program("jit_f", "cpu", builder.number), Status.KEPT, compiled=1)
        )
    notes = builder.notes()
    assert [note.partition(",")[0] for note in notes[SITE]] == [
        "jit_f was compiled 2 times",
        "its program is compiled in every process: the persistent compilation cache of JAX does "
        "not store programs with host callbacks",
    ]
    assert notes[OTHER] == ()


def test_compilations_in_an_earlier_window_are_not_counted():
    builder = Builder().program(function=1)
    mark = builder.recorder.mark()
    builder.program(function=2)
    (summary,) = summarize(builder.recorder.freeze(mark))
    assert summary.notes == ()
    assert len(builder.recorder.freeze(mark).compilations) == 1
    assert len(builder.notes()[SITE]) == 1


def test_note_on_a_program_that_is_not_cached_names_the_jax_version():
    builder = Builder().program(not_cached=True).program(site=OTHER, name="jit_g")
    notes = builder.notes({"jax": "0.9.1"})
    (note,) = notes[SITE]
    assert "the persistent compilation cache of JAX 0.9.1 does not store programs" in note
    assert notes[OTHER] == ()


def test_note_on_a_program_that_is_not_cached_needs_no_version():
    (note,) = Builder().program(not_cached=True).notes()[SITE]
    assert "cache of JAX does not store programs" in note
    assert "  " not in note


@pytest.mark.parametrize(
    ("produced", "passed_on", "words"),
    [
        (1, 0, "1 call returned NaN or infinity for finite arguments"),
        (1_234, 0, "1,234 calls returned NaN or infinity for finite arguments"),
        (0, 2, "2 calls returned NaN or infinity for non-finite arguments"),
        (3, 2, "3 calls returned NaN or infinity for finite arguments; "
               "2 calls returned NaN or infinity for non-finite arguments"),
    ],
)  # fmt: skip
def test_calls_with_non_finite_results_are_counted(produced, passed_on, words):
    recorder = Recorder()
    fact, other = LoweredSite(SITE, None, -1, (), ()), LoweredSite(OTHER, None, -1, (), ())
    for called in (other, fact):
        record_call(recorder, called, 1, 0, 1)
    recorder.values.not_finite(fact, produced, passed_on)
    recording = recorder.freeze()
    assert {s.site: s.notes for s in summarize(recording)} == {SITE: (words,), OTHER: ()}
    assert f"      {words}" in to_text(recording).splitlines()
    assert f"<br>{words}</li>" in to_html(recording)
    assert to_mimebundle(recording)[0][MIME_TYPE]["sites"][0]["notes"] == [words]


def test_equal_notes_are_shown_once():
    builder = Builder()
    for program in (builder.program(not_cached=True), builder.program("jit_g", not_cached=True)):
        assert program is builder
    (note,) = builder.notes({"jax": "0.8.0"})[SITE]
    assert note.startswith("its program is compiled in every process")


def test_notes_hold_no_times():
    builder = Builder().program(function=1).program(function=2, not_cached=True)
    recording = builder.recorder.freeze(environment={"jax": "0.8.0"})
    data, metadata = to_mimebundle(recording)
    assert "_ns" not in str(data)
    assert (
        metadata[MIME_TYPE]["compilations"]
        == [{"program": "jit_f", "lower_ns": 5, "compile_ns": 6, "start_ns": None}] * 2
    )


def test_variants_that_differ_only_in_dtype_are_reported_with_dtypes():
    builder = Builder()
    for number, dtype in enumerate(["float32", "int32"]):
        aval = Aval((3,), dtype)
        fact = LoweredSite(SITE, None, number, (aval,), (aval,))
        builder.recorder.lowered(fact)
        record_call(builder.recorder, fact, 1, 0, 1)
    recording = builder.recorder.freeze()
    for report in (to_text(recording), to_html(recording)):
        assert "float32[3] → float32[3]" in report and "int32[3] → int32[3]" in report


def test_callbacks_at_one_column_show_their_names_before_the_source():
    builder = Builder()
    for number, name in enumerate(["f", "f (finite differences)"]):
        site = Site("pure", name, "m.py", 3, 4, cell=False, source="jax.grad(f)(x)")
        fact = LoweredSite(site, None, number, (), ())
        builder.recorder.lowered(fact)
        record_call(builder.recorder, fact, 1, 0, 1)
    rows = to_text(builder.recorder.freeze()).splitlines()
    assert "m.py:3:5  f: jax.grad(f)(x) " in rows[1]
    assert "m.py:3:5  f (finite differences): jax.grad(f)(x)" in rows[2]


def test_callbacks_at_one_column_with_one_name_show_their_flavors_too():
    builder = Builder()
    for number, flavor in enumerate(["pure", "io"]):
        site = Site(flavor, "<lambda>", "m.py", 3, 4, cell=False, source="c(x)")
        fact = LoweredSite(site, None, number, (), ())
        builder.recorder.lowered(fact)
        record_call(builder.recorder, fact, 1, 0, 1)
    rows = to_text(builder.recorder.freeze()).splitlines()
    assert "  pure <lambda>: c(x)" in rows[1] and "  io <lambda>: c(x)" in rows[2]
