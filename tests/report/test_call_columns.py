"""Call columns: the front end unpacks the host calls that were recorded."""

import base64
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_jaxcb.recording import (
    Aval,
    Compilation,
    LoweredSite,
    Program,
    Recorder,
    Site,
    record_call,
    record_elements,
)
from jupyter_jaxcb.report import MIME_TYPE, call_columns, to_message, to_mimebundle
from jupyter_jaxcb.report.frontend._columns import not_finite_marks
from jupyter_jaxcb.report.frontend._site_view import Marks

SITE = Site("pure", "bessel", "<cell>", 4, 0, cell=True)
OTHER = Site("io", "log", "<cell>", 2, 0, cell=True)
F32 = Aval((), "float32")
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2**60),  # start
        st.integers(0, 2**33),  # duration
        st.integers(0, 2),  # index of the variant
        st.integers(-1, 2**31 - 1),  # batch element
        st.sampled_from([None, "ValueError: no luck", "KeyError: 'x'"]),
    ),
    max_size=30,
)


def recorded(rows):
    recorder = Recorder()
    facts = [LoweredSite(site, None, -1, (F32,) * n, (F32,))
             for site, n in ((SITE, 1), (SITE, 2), (OTHER, 1))]  # fmt: skip
    for start, duration, which, element, error in rows:
        failed = None if error is None else 0
        record_elements(
            recorder,
            facts[which],
            1,
            np.array([element]),
            [start, start + duration],
            failed,
            error or "",
        )
    return recorder.freeze()


@given(rows=ROWS)
def test_every_call_is_unpacked_in_order_of_start(rows, unpacked):
    facts, measured, columns = to_message(recorded(rows))
    variants = [(s["function"], len(w["operands"])) for s in facts["sites"] for w in s["shapes"]]
    found = [
        (
            start,
            duration,
            variants[variant],
            element,
            measured["errors"][error - 1] if error else None,
        )
        for start, duration, element, variant, _, error in unpacked(columns._asdict())
    ]
    first = min((row[0] for row in rows), default=0)
    names = [("bessel", 1), ("bessel", 2), ("log", 1)]
    expected = sorted(rows, key=lambda row: row[0])
    unit = columns.unit_ns
    assert [f[2:] for f in found] == [(names[w], element, e) for _, _, w, element, e in expected]
    for (start, duration, *_), (at, took, *_) in zip(found, expected, strict=True):
        assert abs(start - (at - first)) < unit and abs(duration - took) < unit


@given(rows=ROWS)
def test_saved_calls_equal_those_of_the_message_up_to_rounding(rows, unpacked):
    recording = recorded(rows)
    saved = to_mimebundle(recording)[1][MIME_TYPE].get("calls")
    _, _, columns = to_message(recording)
    if not rows:
        assert saved is None
        return
    assert saved["unit_ns"] >= 100
    found, exact = unpacked(saved), unpacked(columns._asdict())
    assert [row[2:] for row in found] == [row[2:] for row in exact]
    for (start, took, *_), (at, long, *_) in zip(found, exact, strict=True):
        assert abs(start - at) < saved["unit_ns"] + columns.unit_ns
        assert abs(took - long) < saved["unit_ns"] + columns.unit_ns


def test_twenty_thousand_calls_take_a_few_bytes_each():
    generator = np.random.default_rng(0)
    stamps = np.cumsum(generator.integers(20_000, 60_000, 20_001))
    recorder = Recorder()
    fact = LoweredSite(SITE, None, -1, (F32,), (F32,))
    record_elements(recorder, fact, 1, np.arange(20_000), stamps.tolist())
    saved = to_mimebundle(recorder.freeze())[1][MIME_TYPE]["calls"]
    assert len(saved["zlib"]) < 20_000 * 7
    assert len(saved["crossings"]) < 200


def crossings_of(recorder):
    """Return the crossing of each call, as the kernel sends it and as a notebook saves it."""
    recording = recorder.freeze()
    _, _, columns = to_message(recording)
    sent = np.frombuffer(columns.crossings, "<u4").tolist()
    saved = to_mimebundle(recording)[1][MIME_TYPE]["calls"].get("crossings")
    if saved is None:
        return sent, None
    planes = np.frombuffer(zlib.decompress(base64.b64decode(saved)), np.uint8)
    plain = np.ascontiguousarray(planes.reshape(4, -1).T).view("<u4")
    return sent, plain.ravel().tolist()


def test_calls_of_a_loop_over_elements_have_the_number_of_their_crossing():
    recorder = Recorder()
    fact = LoweredSite(SITE, None, -1, (F32,), (F32,))
    record_call(recorder, fact, 1, 0, 5)
    record_elements(recorder, fact, 1, np.arange(300), list(range(10, 311)))
    record_elements(recorder, fact, 1, np.arange(2), [400, 401, 402])
    one, *_, last = numbers = recorder.freeze().calls["crossing"].tolist()
    assert numbers == [one] + [numbers[1]] * 300 + [last] * 2
    assert len({one, numbers[1], last}) == 3
    assert crossings_of(recorder) == (numbers, numbers)


def test_a_trace_without_loops_over_elements_has_no_bytes_about_crossings():
    recorder = Recorder()
    for start in range(3):
        record_call(recorder, LoweredSite(SITE, None, -1, (F32,), (F32,)), 1, start, start + 1)
    assert crossings_of(recorder) == ([], None)


@pytest.mark.parametrize("column", ["thread", "error"])
def test_numbers_beyond_16_bits_are_marked_as_out_of_range(column, unpacked):
    recording = recorded([(0, 1, 0, 0, None)])
    calls = recording.calls.copy()
    calls[column] = 70_000
    columns = call_columns(calls, np.zeros(1, np.int64))
    ((_, _, _, variant, thread, error),) = unpacked(columns._asdict())
    assert {"thread": thread, "error": error}[column] == 0xFFFF
    assert variant == 0


def test_sample_values_refer_to_their_call(unpacked):
    recorder = Recorder()
    fact = LoweredSite(SITE, None, -1, (F32,), (F32,))
    for start in (50, 10, 30):
        crossing = record_call(recorder, fact, 1, start, start + 1)
        recorder.values.take(fact, crossing, -1, [np.float32(start)], [np.float32(start)])
    facts, measured, columns = to_message(recorder.freeze())
    ((_, operands, *_), *_) = facts["sites"][0]["sample_values"]
    assert operands == ["50"]
    starts = [row[0] for row in unpacked(columns._asdict())]
    assert [starts[row] for row in measured["sites"][0]["sample_rows"]] == [40, 0, 20]


def test_start_of_a_compilation_counts_from_the_first_call():
    recorder = Recorder()
    fact = LoweredSite(SITE, None, -1, (F32,), (F32,))
    program = Program("jit_f", "cpu")
    recorder.add_compilation(Compilation(program, 1, (), 20, 300, end_ns=1_000))
    recorder.add_compilation(Compilation(program, 1, (), 20, 300))  # its end is not known
    assert starts_ns(recorder) == [None, None]
    record_call(recorder, fact, 1, 5_000, 6_000)
    record_call(recorder, fact, 2, 4_000, 7_000)
    assert starts_ns(recorder) == [1_000 - 320 - 4_000, None]


def starts_ns(recorder):
    """Return the start of each compilation, as a notebook saves it and as the kernel sends it."""
    recording = recorder.freeze()
    measured = to_mimebundle(recording)[1][MIME_TYPE]
    found = [one["start_ns"] for one in measured["compilations"]]
    assert [one["start_ns"] for one in to_message(recording)[1]["compilations"]] == found
    return found


def runs_of(rows, most=100):
    """Return the runs of a site of which these calls returned NaN, and the element of the first."""
    recorder = Recorder()
    fact = LoweredSite(SITE, None, -1, (F32,), (F32,))
    for row in range(12):
        crossing = record_call(recorder, fact, 1, 10 * row, 10 * row + 1)
        if row in rows:
            recorder.values.mark(fact, crossing, -1, rows[row])
    recording = recorder.freeze()
    return not_finite_marks(recording, recording.calls, most).get(SITE, Marks())


def test_calls_that_returned_nan_are_runs_of_rows():
    assert runs_of({}) == Marks()
    assert runs_of({0: False, 1: False, 4: False, 9: True, 10: True}) == Marks(
        (0, 2, 2, 1), (9, 2), -1
    )
    assert runs_of(dict.fromkeys(range(1, 12, 2), False), most=2) == Marks((1, 1, 1, 1), (), -1)


def test_a_trace_without_nan_has_no_bytes_about_it():
    recorder = Recorder()
    record_call(recorder, LoweredSite(SITE, None, -1, (F32,), (F32,)), 1, 0, 1)
    _, metadata = to_mimebundle(recorder.freeze())
    ((site,), *_) = [one["sites"] for one in metadata.values()]
    assert not {"not_finite_rows", "passed_on_rows", "first_element"} & set(site)
