"""Reports are pure functions of a recording; equal programs give equal data."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_jaxcb.recording import Outcome, Program, Reason, Recorder, Status, record_elements
from jupyter_jaxcb.report.frontend import _mime
from tests._site_schema import complete
from tests.interface import (
    MIME_TYPE,
    Aval,
    Compilation,
    LoweredSite,
    Recording,
    Site,
    record_call,
    summarize,
    to_html,
    to_mimebundle,
    to_page,
    to_text,
)

from ._several import data_of, level

USED = Site("pure", "bessel", "<cell>", 4, 11, cell=True, source="return bessel(1, z)")
UNUSED = Site("pure", "bessel", "<cell>", 3, 4, cell=True, source="a = bessel(2, z) < 3 & z")
LOG = Site("io", "log", "/a/model.py", 9, 0, cell=False, source="log(i)")
TRACED = Site("pure", "bessel", "<cell>", 8, 0, cell=True, source="jax.make_jaxpr(bessel)(1, z)")


def recorded(start=1_000):
    recorder, program = Recorder(capacity=100), Program("jit_f", "cpu")
    for site in (USED, UNUSED, LOG, TRACED):
        recorder.bound(site)
    bessel = LoweredSite(USED, program, 0, (), ())
    looped = (level(4, "sequential", (True,)),)
    elements = LoweredSite(LOG, Program("jit_g", "cpu"), 0, (Aval((4,), "int32"),), (), looped)
    recorder.lowered(bessel)
    recorder.lowered(elements)
    record_call(recorder, bessel, 1, start, start + 41_000)
    record_elements(recorder, elements, 1, np.arange(4), [start + n for n in range(5)])
    recorder.add_outcome(
        Outcome(UNUSED, program, Status.UNUSED, written=1, compiled=0, reason=Reason.UNUSED)
    )
    return recorder.freeze(cells=("<cell>",))


def test_summary_has_a_row_for_each_site_but_one_that_was_only_traced_in_the_order_of_lines():
    found = [(s.site, s.status, s.calls, s.elided, s.programs) for s in summarize(recorded())]
    assert found == [
        (UNUSED, Status.UNUSED, 0, 1, ()),
        (USED, Status.KEPT, 1, 0, ("jit_f",)),
        (LOG, Status.KEPT, 4, 0, ("jit_g",)),
    ]


SITES = [dataclasses.replace(LOG, line=line) for line in range(1, 41)]
ERRORS = ("ValueError: a", "ValueError: b", "ValueError: c")


def many_sites(rows, lowered):
    """Return a recording of `rows` (lowered, crossing, error, nanoseconds) from these sites."""
    calls = np.zeros(len(rows), Recording().calls.dtype)
    for place, name in enumerate(("lowered", "crossing", "error", "end_ns")):
        calls[name] = [row[place] for row in rows]
    facts = tuple(LoweredSite(SITES[site], None, -1, (), ()) for site in lowered)
    return Recording(lowered=facts, calls=calls, threads=("t",), errors=ERRORS)


@given(data=st.data())
def test_summary_equals_counting_the_calls_one_by_one(data):
    lowered = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=6))
    row = st.tuples(
        st.integers(0, len(lowered) - 1),
        st.integers(0, 4),
        st.integers(0, 3),
        st.integers(0, 2**60),
    )
    recording = many_sites(data.draw(st.lists(row, max_size=12)), lowered)
    summaries = {summary.site: summary for summary in summarize(recording)}
    assert set(summaries) == {SITES[site] for site in lowered}
    for site, summary in summaries.items():
        calls = [call for call in recording if recording.lowered[call.lowered].site == site]
        assert summary.calls == len(calls)
        assert summary.crossings == len({call.crossing for call in calls})
        assert summary.host_ns == sum(call.end_ns - call.start_ns for call in calls)
        assert summary.host_ns == sum(shapes.host_ns for shapes in summary.shapes)
        assert list(summary.errors) == list(dict.fromkeys(c.error for c in calls if c.error))


def several_shapes():
    """Return a recording of one site, called for two shapes and compiled for a third."""
    recording = many_sites([(0, 0, 0, 28_500_000_000), (1, 0, 0, 10**6), (1, 1, 0, 10**6)], [0] * 3)
    lowered = [
        dataclasses.replace(fact, operands=(Aval((size,), "float32"),))
        for size, fact in enumerate(recording.lowered)
    ]
    return dataclasses.replace(recording, lowered=tuple(lowered))


@pytest.mark.kept
def test_site_has_all_its_calls_and_each_variant_has_its_own():
    rows = [line.split("  ") for line in to_text(several_shapes()).splitlines()[1:]]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["model.py:1", "log(i)", "3 calls", "3 shapes", "28.5 s"],
        ["1 call", "(0,) → nothing", "28.5 s"],
        ["2 calls", "(1,) → nothing", "2 ms"],
        ["0 calls", "(2,) → nothing"],
    ]
    lines = re.findall(r"(?:<li>|<br>)(.*?)(?=<br>|</li>)", to_html(several_shapes(), times=True))
    assert [re.sub(r"</?code>", "", line).split(" · ") for line in lines] == [
        ["model.py:1 log(i)", "3 calls", "3 shapes", "28.5 s"],
        ["1 call", "(0,) → nothing", "28.5 s"],
        ["2 calls", "(1,) → nothing", "2 ms"],
        ["0 calls", "(2,) → nothing"],
    ]
    data, metadata = to_mimebundle(several_shapes())
    shapes = complete(data[MIME_TYPE]["sites"][0])["shapes"]
    assert [one["calls"] for one in shapes] == [1, 2, 0]
    assert metadata[MIME_TYPE]["sites"][0]["variants_ns"] == [28_500_000_000, 2_000_000, 0]


@pytest.mark.parametrize(
    ("compiled", "runs", "status"),
    [
        (1, None, Status.NOT_RUN),  # every run calls it
        (None, 0, Status.NOT_RUN),
        (None, 1, Status.NOT_REACHED),
        (None, None, Status.UNKNOWN),
    ],
)
def test_status_of_a_site_that_was_not_called_comes_from_its_program(compiled, runs, status):
    recorder, program = Recorder(), Program("jit_f", "cpu", 1)
    recorder.lowered(LoweredSite(USED, program, 0, (), (), ()))
    recorder.add_outcome(Outcome(USED, program, Status.KEPT, index=0, compiled=compiled))
    if runs is not None:
        recorder.start_counting_runs(program)
    for _ in range(runs or 0):
        recorder.ran(program)
    (summary,) = summarize(recorder.freeze())
    assert (summary.status, summary.calls, summary.elided) == (status, 0, 0)
    assert summary.reason and summary.advice


def test_data_is_the_same_for_equal_programs_and_times_are_metadata():
    (data, measured), (again, _) = map(data_of, map(recorded, (1_000, 987_654_321)))
    assert data == again and "host_ns" not in str(data)
    assert [site["host_ns"] for site in measured["sites"]] == [0, 41_000, 4]
    assert data["schema"] == 1


def test_notes_on_compilations_are_in_the_data_and_their_times_are_not():
    recorder, site = Recorder(), dataclasses.replace(LOG, flavor="pure")
    for number in (1, 2):
        program = Program("jit_f", "cpu", number)
        compilation = Compilation(program, number, (), 5, 6, not_cached=number == 2, code=1)
        recorder.add_compilation(compilation)
        recorder.lowered(LoweredSite(site, program, 0, (), ()))
        recorder.add_outcome(Outcome(site, program, Status.KEPT, index=0, compiled=1))
    data, measured = data_of(recorder.freeze(environment={"jax": "0.9.1"}))
    notes = "\n".join(data["sites"][0]["notes"])
    assert "compiled 2 times, each time for a new function object" in notes
    assert "the persistent compilation cache of JAX 0.9.1 does not store programs" in notes
    one = {"program": "jit_f", "lower_ns": 5, "compile_ns": 6, "start_ns": None}
    assert measured["compilations"] == [one] * 2 and "_ns" not in str(data)


def test_notebook_and_page_count_the_calls_that_they_leave_out(monkeypatch):
    monkeypatch.setattr(_mime, "MAX_SAVED_CALLS", 3)
    monkeypatch.setattr(_mime, "MAX_PAGE_CALLS", 2)
    for measured, rows in ((data_of(recorded())[1], 3), (to_page(recorded())["measured"], 2)):
        assert (measured["calls"]["rows"], measured["calls_not_saved"]) == (rows, 5 - rows)
