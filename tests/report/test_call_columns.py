"""Call columns: the front end unpacks the host calls that were recorded."""

import base64
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_jaxcb.recording import record_elements
from jupyter_jaxcb.report import call_columns
from tests.interface import LoweredSite, Recorder, Site, record_call, to_message

from ._several import data_of, f32

SITES = [Site("pure", name, "<cell>", line, 0, cell=True) for name, line in (("f", 4), ("g", 2))]
FACT = LoweredSite(SITES[0], None, -1, (f32(),), (f32(),))
FACTS = [FACT, LoweredSite(SITES[0], None, -1, (f32(),) * 2, (f32(),)),
         LoweredSite(SITES[1], None, -1, (f32(),), (f32(),))]  # fmt: skip
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2**60),  # start
        st.integers(0, 2**33),  # duration
        st.sampled_from([0, 1, 2]),  # which of the facts
        st.integers(-1, 2**31 - 1),  # batch element
        st.sampled_from([None, "ValueError: no luck", "KeyError: 'x'"]),
    ),
    max_size=30,
)


@given(rows=ROWS)
def test_every_call_is_unpacked_in_order_of_start_and_saved_up_to_rounding(rows, unpacked):
    recorder = Recorder()
    for start, took, which, element, error in rows:
        stamps, failed = [start, start + took], None if error is None else 0
        record_elements(recorder, FACTS[which], 1, np.array([element]), stamps, failed, error or "")
    recording = recorder.freeze()
    facts, measured, columns = to_message(recording)
    saved = data_of(recording)[1].get("calls") if rows else columns._asdict()
    variants = [(s["function"], one["shapes"].count("()")) for s in facts["sites"]
                for one in s["shapes"]]  # fmt: skip
    names, errors = [("f", 2), ("f", 3), ("g", 2)], [None, *measured["errors"]]
    rows.sort(key=lambda row: row[0])
    sent, again = unpacked(columns._asdict()), unpacked(saved)
    assert [row[2:] for row in again] == [row[2:] for row in sent]
    assert [(element, variants[v], errors[e]) for _, _, element, v, _, e in sent] == [
        (element, names[which], error) for _, _, which, element, error in rows
    ]
    for unit, found in ((columns.unit_ns, sent), (max(saved["unit_ns"], 100), again)):
        for (start, took, *_), (at, long, *_) in zip(found, rows, strict=True):
            assert abs(start - (at - rows[0][0])) < unit and abs(took - long) < unit


def test_twenty_thousand_calls_take_a_few_bytes_each():
    generator, recorder = np.random.default_rng(0), Recorder()
    stamps = np.cumsum(generator.integers(20_000, 60_000, 20_001))
    record_elements(recorder, FACT, 1, np.arange(20_000), stamps.tolist())
    saved = data_of(recorder.freeze())[1]["calls"]
    assert len(saved["zlib"]) < 20_000 * 7
    assert len(saved["crossings"]) < 200


def test_calls_of_a_loop_over_elements_have_the_number_of_their_crossing():
    recorder = Recorder()
    record_call(recorder, FACT, 1, 0, 5)
    record_elements(recorder, FACT, 1, np.arange(300), list(range(10, 311)))
    record_elements(recorder, FACT, 1, np.arange(2), [400, 401, 402])
    recording = recorder.freeze()
    numbers = recording.calls["crossing"].tolist()
    assert numbers == [numbers[0]] + [numbers[1]] * 300 + [numbers[-1]] * 2
    assert len(set(numbers)) == 3
    assert np.frombuffer(to_message(recording)[2].crossings, "<u4").tolist() == numbers
    packed = zlib.decompress(base64.b64decode(data_of(recording)[1]["calls"]["crossings"]))
    planes = np.frombuffer(packed, np.uint8).reshape(4, -1)
    assert np.ascontiguousarray(planes.T).view("<u4").ravel().tolist() == numbers


@pytest.mark.parametrize("column", ["thread", "error"])
def test_numbers_beyond_16_bits_are_marked_as_out_of_range(column, unpacked):
    recorder = Recorder()
    record_call(recorder, FACT, 1, 0, 1)
    calls = recorder.freeze().calls.copy()
    calls[column] = 70_000
    ((*_, variant, thread, error),) = unpacked(call_columns(calls, np.zeros(1, int))._asdict())
    assert {"thread": thread, "error": error}[column] == 0xFFFF
    assert variant == 0


def test_sample_values_refer_to_their_call(unpacked):
    recorder = Recorder()
    for start in (50, 10, 30):
        crossing = record_call(recorder, FACT, 1, start, start + 1)
        recorder.values.take(FACT, crossing, -1, [np.float32(start)], [np.float32(start)])
    facts, measured, columns = to_message(recorder.freeze())
    assert facts["sites"][0]["sample_values"][0] == ["50 → 50", False]
    starts = [row[0] for row in unpacked(columns._asdict())]
    assert [starts[row] for row in measured["sites"][0]["sample_rows"]] == [40, 0, 20]


def test_calls_that_returned_nan_are_runs_of_rows_of_which_a_notebook_saves_the_first():
    """How many calls to skip, how many follow, ...; apart those whose arguments had NaN."""
    recorder = Recorder()
    for row in range(300):
        crossing = record_call(recorder, FACT, 1, 10 * row, 10 * row + 1)
        if row in (0, 1, 4, 9, 10) or (row > 20 and row % 2):
            recorder.values.mark(FACT, crossing, -1, row in (9, 10))
    runs = [0, 2, 2, 1, 16, 1, *[1] * 278]
    recording = recorder.freeze()
    for (site,), found in (
        (to_message(recording)[1]["sites"], runs),
        (data_of(recording)[1]["sites"], runs[:200]),
    ):
        assert (site["not_finite_rows"], site["passed_on_rows"]) == (found, [9, 2])
