"""Reports are pure functions of a recording; equal programs give equal data."""

import dataclasses
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    Outcome,
    Program,
    Reason,
    Recorder,
    Status,
    VmapLevel,
    record_call,
    record_elements,
)
from jupyter_jaxcb.report import call_words, summarize, time_words
from tests._site_schema import complete
from tests.interface import (
    MIME_TYPE,
    Aval,
    LoweredSite,
    Recording,
    Site,
    to_html,
    to_mimebundle,
    to_text,
)

USED = Site("pure", "bessel", "<cell>", 4, 11, cell=True, source="return bessel(1, z)")
UNUSED = Site("pure", "bessel", "<cell>", 3, 4, cell=True, source="a = bessel(2, z) < 3 & z")
LOG = Site("io", "log", "/a/model.py", 9, 0, cell=False, source="log(i)")
TRACED = Site("pure", "bessel", "<cell>", 8, 0, cell=True, source="jax.make_jaxpr(bessel)(1, z)")


def recorded(start=1_000, capacity=100, cells=("<cell>",)):
    recorder = Recorder(capacity=capacity)
    for site in (USED, UNUSED, LOG, TRACED):
        recorder.bound(site)
    z = Aval((3, 5), "float32")
    bessel = LoweredSite(USED, Program("jit_f", "cpu"), 0, (Aval((1,), "int32"), z), (z,),
                         (VmapLevel(3, VMAP_METHODS["expand_dims"], (False, True)),))  # fmt: skip
    elements = LoweredSite(LOG, Program("jit_g", "cpu"), 0, (Aval((4,), "int32"),), (),
                        (VmapLevel(4, VMAP_METHODS["sequential"], (True,)),))  # fmt: skip
    recorder.lowered(bessel)
    recorder.lowered(elements)
    record_call(recorder, bessel, 1, start, start + 41_000)
    record_elements(recorder, elements, 1, np.arange(4), [start + n for n in range(5)])
    recorder.add_outcome(
        Outcome(UNUSED, Program("jit_f", "cpu"), Status.UNUSED, written=1, compiled=0,
                reason=Reason.UNUSED)
    )  # fmt: skip
    return recorder.freeze(cells=cells)


def test_summary_counts_calls_and_names_statuses_in_the_order_of_lines():
    unused, used, log = summarize(recorded())
    assert (unused.site, unused.status, unused.calls, unused.elided) == (
        UNUSED,
        Status.UNUSED,
        0,
        1,
    )
    assert (used.site, used.status, used.calls, used.host_ns) == (USED, Status.KEPT, 1, 41_000)
    assert (log.site, log.calls, log.crossings) == (LOG, 4, 1)
    assert used.programs == ("jit_f",)


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


@pytest.mark.parametrize("text", ["", "\n", "\r\n\n"])
@pytest.mark.parametrize("report", [to_text, to_html, to_mimebundle])
def test_error_without_a_message_is_reported(report, text):
    recording = dataclasses.replace(many_sites([(0, 0, 1, 5)], [0]), errors=(text,))
    assert "✕ log raised an error" in str(report(recording))


class ScanCounter(np.ndarray):
    """Rows of calls that count how often all of them are scanned."""

    scans = 0

    def __getitem__(self, place):
        if isinstance(place, str | np.ndarray):
            ScanCounter.scans += 1
        return np.asarray(super().__getitem__(place))


@pytest.mark.parametrize("report", [to_text, to_html, to_mimebundle])
def test_calls_are_scanned_as_often_for_many_sites_as_for_two(report, monkeypatch):
    scans = []
    for sites in (2, 40):
        monkeypatch.setattr(ScanCounter, "scans", 0)
        recording = many_sites([(n, n, 0, 1) for n in range(sites)], range(sites))
        report(dataclasses.replace(recording, calls=recording.calls.view(ScanCounter)))
        scans.append(ScanCounter.scans)
    assert scans[0] == scans[1] > 0


def test_site_that_was_only_traced_is_not_elided():
    assert TRACED not in [summary.site for summary in summarize(recorded())]


@pytest.mark.parametrize(
    ("compiled", "counted", "runs", "status"),
    [
        (1, False, 0, Status.NOT_RUN),  # every run calls it
        (None, True, 0, Status.NOT_RUN),
        (None, True, 1, Status.NOT_REACHED),
        (None, False, 0, Status.UNKNOWN),
    ],
    ids=["surely called", "not run", "run", "not seen"],
)
def test_status_of_a_site_that_was_not_called_comes_from_its_program(
    compiled, counted, runs, status
):
    recorder = Recorder()
    program = Program("jit_f", "cpu", 1)
    recorder.lowered(LoweredSite(USED, program, 0, (), (), ()))
    recorder.add_outcome(Outcome(USED, program, Status.KEPT, index=0, compiled=compiled))
    if counted:
        recorder.start_counting_runs(program)
    for _ in range(runs):
        recorder.ran(program)
    (summary,) = summarize(recorder.freeze())
    assert (summary.status, summary.calls, summary.elided) == (status, 0, 0)
    assert summary.reason and summary.advice


def test_site_that_was_lowered_and_not_compiled_is_left_out():
    recorder = Recorder()
    recorder.lowered(LoweredSite(USED, Program("jit_f", "cpu", 1), 0, (), (), ()))
    assert summarize(recorder.freeze()) == []


def test_text_shows_status_shapes_and_vmap():
    text = to_text(recorded(), times=False)
    first = "⚠ bessel, line 3: never called (unused); 1 call elsewhere · log 4 calls"
    assert text.splitlines()[0] == first
    assert "line 3      a = bessel(2, z) < 3 & z  unused  0 calls" in text
    assert "1 elided: nothing uses its result, so JAX removed the call before compiling " in text
    assert "vmap 3 (size-1 axis, batched), expand_dims" in text
    assert "model.py:9" in text


def test_times_are_shown_only_on_request():
    assert "41 µs" in to_text(recorded(), times=True)
    assert "µs" not in to_text(recorded(), times=False)


def test_site_in_a_cell_that_was_not_recorded_is_marked():
    assert "line 4, another cell" in to_text(recorded(cells=("<other>",)))
    assert "another cell" not in to_text(recorded())
    assert "another cell" not in to_text(recorded(cells=()))  # a script


@pytest.mark.parametrize("to", [to_text, to_html])
def test_report_of_an_empty_recording_is_empty(to):
    assert to(Recording()) == ""


def test_html_escapes_source_and_has_no_script():
    html = to_html(recorded())
    assert "<code>a = bessel(2, z) &lt; 3 &amp; z</code>" in html
    assert "z) < 3" not in html
    assert "<script" not in html


def test_notebook_grows_by_less_than_2_kb_with_a_batched_call():
    recorder = Recorder()
    image = Aval((3, 5), "float32")
    fact = LoweredSite(USED, Program("jit_f", "cpu"), 0, (Aval((1,), "int32"), image), (image,),
                       (VmapLevel(3, VMAP_METHODS["expand_dims"], (False, True)),))  # fmt: skip
    recorder.lowered(fact)
    record_call(recorder, fact, 1, 1_000, 42_000)
    run = recorder.freeze(cells=("<cell>",), environment={"jax": "0.10.2", "backend": "cpu"})
    data, metadata = to_mimebundle(run, name="0" * 32)
    output = {"data": data, "metadata": metadata, "output_type": "display_data"}
    saved = json.dumps(output, ensure_ascii=False, separators=(",", ":"))
    assert len(saved.encode()) < 2_000


def test_html_needs_no_style_sheet():
    """Code hosts remove style sheets and classes, and repeat neither for each output."""
    html = to_html(recorded())
    assert "style" not in html
    assert re.findall(r"<strong>(.*?)</strong>", html) == [
        "⚠ unused",
        "1 call for 3 elements",
        "4 calls, one for each element",
    ]


def test_html_has_times_only_on_request():
    assert to_html(recorded(1_000)) == to_html(recorded(987_654_321))
    plain, timed = (to_html(recorded(), times=times) for times in (False, True))
    assert "41 µs" in timed and "<svg" in timed
    assert "41 µs" not in plain and "<svg" not in plain


def test_data_is_the_same_for_equal_programs_and_times_are_metadata():
    (data, metadata), (again, later) = (
        to_mimebundle(recorded(start)) for start in (1_000, 987_654_321)
    )
    assert data == again
    assert "host_ns" not in str(data[MIME_TYPE])
    assert [site["host_ns"] for site in metadata[MIME_TYPE]["sites"]] == [0, 41_000, 4]
    assert set(later) == {MIME_TYPE}
    assert data[MIME_TYPE]["schema"] == 1


def test_saved_call_table_counts_what_it_leaves_out(monkeypatch):
    monkeypatch.setattr("jupyter_jaxcb.report.frontend._mime.MAX_SAVED_CALLS", 3)
    _, metadata = to_mimebundle(recorded())
    assert metadata[MIME_TYPE]["calls"]["rows"] == 3
    assert metadata[MIME_TYPE]["calls_not_saved"] == 2


def test_full_log_is_reported_in_text_and_html():
    recording = recorded(capacity=2)
    assert "3 calls were counted but not logged" in to_text(recording)
    assert "3 calls were counted but not logged" in to_html(recording)


def test_failed_call_is_in_the_headline():
    recorder = Recorder()
    fact = LoweredSite(USED, None, -1, (), ())
    record_call(recorder, fact, 1, 0, 1, "ValueError: no luck")
    recording = recorder.freeze()
    assert to_text(recording).startswith("✕ bessel raised ValueError: no luck · ")
    assert "ValueError: no luck" in to_html(recording)


@pytest.mark.parametrize(
    ("ns", "words"),
    [(0, "0 ns"), (999, "999 ns"), (1_000, "1 µs"), (41_234, "41.2 µs"), (999_600, "1 ms"),
     (12_345_678, "12.3 ms"), (999_600_000, "1 s"), (75_000_000_000, "75 s")],
)  # fmt: skip
def test_time_has_three_digits(ns, words):
    assert time_words(ns) == words


def test_one_call_is_singular():
    assert [call_words(n) for n in (0, 1, 12_000)] == ["0 calls", "1 call", "12,000 calls"]
