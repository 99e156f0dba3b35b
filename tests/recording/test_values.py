"""Sample values are few, small and copies; NaN and infinity are counted per window."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_jaxcb.recording import (
    ArrayValues,
    Aval,
    Compilation,
    LoweredSite,
    NotFinite,
    Program,
    Recorder,
    Recording,
    SampleValues,
    Site,
    record_call,
)
from tests._threads import in_threads


def fact(name="f"):
    return LoweredSite(Site("pure", name, "m.py", 3, 0, cell=False), None, -1, (), ())


def take(recorder, lowered, operands=(), results=(), element=-1):
    """Record a row of the log and the sample values of one host call; return its crossing."""
    crossing = record_call(recorder, lowered, 1, 0, 1)
    recorder.values.take(lowered, crossing, element, operands, results)
    return crossing


def abbreviated(value):
    recorder = Recorder()
    take(recorder, fact(), [value])
    ((word,),) = [sample.operands for sample in recorder.freeze().sample_values]
    return word


BF16, F8, INT4 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (np.float32(0.25), "0.25"),
        (np.float32(0.1), "0.1"),
        (np.array(-0.0), "-0"),
        (np.float64(1e200), "1e+200"),
        (np.float32(np.nan), "nan"),
        (np.float64(-np.inf), "-inf"),
        (np.array([1, 2, 3]), "[1, 2, 3]"),
        (np.arange(6), "[0, 1, 2, 3, 4, 5]"),
        (np.arange(7), "[0, 1, 2, 3, 4, 5, …]"),
        (np.arange(10, dtype=np.float32) / 10, "[0, 0.1, 0.2, 0.3, 0.4, 0.5, …]"),
        (np.array([True, False]), "[True, False]"),
        (np.bool_(True), "True"),
        (np.int8(-128), "-128"),
        (np.array(2**64 - 1, np.uint64), "18446744073709551615"),
        (np.array([-(2**63)], np.int64), "[-9223372036854775808]"),
        (np.array([-8, 7], INT4), "[-8, 7]"),
        (np.array([0, 15], ml_dtypes.uint4), "[0, 15]"),
        (np.array([0.5, 3], BF16), "[0.5, 3]"),
        (np.array(448, F8), "448"),
        (np.array([1.5], np.float16), "[1.5]"),
        (np.complex64(1 + 2j), "1+2j"),
        (np.array([complex(1, np.nan)]), "[1+nanj]"),
        (np.zeros(0), "[]"),
        (np.zeros((3, 0, 2)), "[]"),
        (np.array(7), "7"),
        (np.arange(20)[::3], "[0, 3, 6, 9, 12, 15, …]"),
        (np.arange(4)[::-1], "[3, 2, 1, 0]"),
        (np.asfortranarray([[1, 2, 3], [4, 5, 6]]), "[1, 2, 3, 4, 5, 6]"),
        (np.arange(6).reshape(2, 3).T, "[0, 3, 1, 4, 2, 5]"),
        (np.broadcast_to(np.float32(2), (2, 2)), "[2, 2, 2, 2]"),
        (np.broadcast_to(np.float32(2), (10**6, 10**6)), "[2, 2, 2, 2, 2, 2, …]"),
    ],
)
def test_value_is_abbreviated_in_row_major_order(value, word):
    assert abbreviated(value) == word


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9), st.integers(1, 3))
def test_first_six_integers_are_shown_exactly(numbers, step):
    array = np.array(numbers, np.int64)[::step]
    shown = [str(number) for number in array[:6].tolist()]
    assert abbreviated(array) == f"[{', '.join(shown + ['…'] * (len(array) > 6))}]"


def test_first_three_calls_of_each_site_are_kept():
    recorder = Recorder()
    f, g = fact("f"), fact("g")
    for number in range(5):
        take(recorder, f, [np.array(number)], [np.array(10 * number)])
    crossing = take(recorder, g, (), [np.array(7)], element=4)
    sample_values = recorder.freeze().sample_values
    assert [(p.operands, p.results) for p in sample_values[:3]] == [
        (("0",), ("0",)), (("1",), ("10",)), (("2",), ("20",)),
    ]  # fmt: skip
    assert sample_values[3] == SampleValues(1, crossing, 4, (), ("7",))
    assert len(sample_values) == 4


def test_at_most_a_thousand_sample_values_are_kept():
    recorder = Recorder()
    facts = [fact(f"f{number}") for number in range(400)]
    for lowered in facts:
        for number in range(3):
            take(recorder, lowered, [np.array(number)])
    assert len(recorder.freeze().sample_values) == 1_000
    assert facts[-1] in recorder.values.full


def test_every_window_keeps_its_first_calls():
    recorder = Recorder()
    f = fact()
    found = []
    for window in range(3):
        mark = recorder.mark()
        for number in range(5):
            take(recorder, f, [np.array(10 * window + number)])
        found.append([p.operands for p in recorder.freeze(mark).sample_values])
    assert found == [[(str(10 * n + i),) for i in range(3)] for n in range(3)]


def test_kept_values_are_copies():
    recorder = Recorder()
    given_, returned = np.zeros(3), np.ones(2)
    take(recorder, fact(), [given_], [returned])
    given_[:], returned[:] = 7, 8
    (sample,) = recorder.freeze().sample_values
    assert (sample.operands, sample.results) == (("[0, 0, 0]",), ("[1, 1]",))


def test_recorder_without_sample_values_keeps_none_in_any_window():
    recorder = Recorder(sample_values=False)
    f = fact()
    assert f in recorder.values.full
    for _ in range(2):
        mark = recorder.mark()
        take(recorder, f, [np.array(1)])
        assert f in recorder.values.full
        recorder.values.not_finite(f, 1, 0)
        assert recorder.freeze(mark).sample_values == ()
        assert recorder.freeze(mark).not_finite == (NotFinite(0, 1, 0),)


def test_calls_with_non_finite_results_are_counted_by_window_and_site():
    recorder = Recorder()
    f, g = fact("f"), fact("g")
    for lowered in (f, g):
        take(recorder, lowered)
    recorder.values.not_finite(f, 2, 1)
    mark = recorder.mark()
    take(recorder, g)
    recorder.values.not_finite(g, 1, 0)
    recorder.values.not_finite(g, 0, 5)
    assert recorder.freeze(mark).not_finite == (NotFinite(0, 1, 5),)
    assert recorder.freeze().not_finite == (NotFinite(0, 2, 1), NotFinite(1, 1, 5))


def test_values_from_many_threads_are_counted_once_each():
    recorder = Recorder()
    f = fact()

    def work():
        for number in range(500):
            take(recorder, f, [np.array(number)])
            recorder.values.not_finite(f, 1, 2)

    in_threads(lambda _: work(), range(4))
    recording = recorder.freeze()
    assert len(recording.sample_values) == 3
    assert recording.not_finite == (NotFinite(0, 2_000, 4_000),)
    calls = {call.crossing for call in recording}
    assert {sample.crossing for sample in recording.sample_values} <= calls


texts = st.lists(st.text(max_size=6), max_size=3).map(tuple)
counts = st.integers(0, 2**40)
word = st.text(max_size=6)
arrays = st.lists(st.builds(ArrayValues, counts, word, word, counts, counts, word), max_size=2).map(
    tuple
)
avals = st.lists(
    st.builds(Aval, st.lists(st.integers(0, 9), max_size=3).map(tuple), st.just("bfloat16")),
    max_size=2,
).map(tuple)


@given(
    st.lists(
        st.builds(
            SampleValues, st.just(0), counts, st.integers(-1, 99), texts, texts, st.booleans(),
            arrays,
        ),
        max_size=3,
    ),
    st.lists(st.builds(NotFinite, st.just(0), counts, counts, counts), max_size=3),
    st.lists(
        st.builds(
            Compilation,
            st.builds(Program, st.text(max_size=5), st.just("cpu"), counts, st.just(0)),
            counts, avals, counts, counts, st.booleans(), counts, counts, st.just(()), st.just(()),
        ),
        max_size=3,
    ),
)  # fmt: skip
def test_json_keeps_sample_values_counts_and_compilations(sample_values, not_finite, compilations):
    recording = Recording(
        lowered=(fact(),),
        sample_values=tuple(sample_values),
        not_finite=tuple(not_finite),
        compilations=tuple(compilations),
    )
    back = Recording.from_json(recording.to_json())
    assert (back.sample_values, back.not_finite) == (recording.sample_values, recording.not_finite)
    assert back.compilations == recording.compilations
    assert all(type(sample) is SampleValues for sample in back.sample_values)
    assert all(type(compilation.program) is Program for compilation in back.compilations)
    assert back.to_json() == recording.to_json()


def test_at_most_ten_thousand_calls_with_non_finite_results_are_kept():
    recorder = Recorder()
    f = fact()
    crossing = take(recorder, f)
    for _ in range(10_002):
        recorder.values.mark(f, crossing, -1, True)
    assert len(recorder.freeze().not_finite_calls) == 10_000
