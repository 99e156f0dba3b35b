"""Merged recordings of several processes, their clocks, reports, files and exports."""

import dataclasses
import itertools
import json
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.gather import _gather
from jupyter_jaxcb.recording import (
    Frame,
    LoweredSite,
    Process,
    Recorder,
    Running,
    Status,
    merged,
    record_call,
)
from jupyter_jaxcb.report import summarize, to_html, to_mimebundle, to_text

from ._recorded import HERE, recorded

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "several-processes.md"


def test_sites_at_the_same_line_are_one_site():
    both = merged([recorded([(1, 2)]), recorded([(3, 4), (5, 6)])])
    (site,) = summarize(both)
    assert dict(both.bound) == {HERE: 2}
    assert site.calls == site.expected == 3
    assert site.notes[0] == "1 call in process 0, 2 calls in process 1"
    assert site.notes[0] in GUIDE.read_text("utf-8")


def test_processes_with_equal_counts_are_grouped():
    four = merged([recorded([(1, 2)])] * 3 + [recorded([])])
    assert summarize(four)[0].notes[0] == "1 call in processes 0-2, 0 calls in process 3"
    two = merged([recorded([(1, 2)])] * 2)
    assert summarize(two)[0].notes[0] == "1 call in each of 2 processes"


def test_compiling_once_per_process_is_not_noted():
    (site,) = summarize(merged([recorded([(1, 2)])] * 3))
    assert not any("compiled" in note for note in site.notes)


def test_functions_of_different_processes_are_kept_apart():
    """Each process numbers its functions from 1."""
    three = merged([recorded([(1, 2)])] * 3).compilations
    assert [(row.function, row.code) for row in three] == [(1, 1), (2, 2), (3, 3)]


def test_binds_of_all_processes_are_added():
    twice = Recorder()
    twice.bound(HERE)
    twice.bound(HERE)
    both = merged([twice.freeze(), recorded([]), recorded([])])
    assert dict(both.bound) == {HERE: 4}


def test_different_statuses_are_reported_by_process():
    both = merged([recorded([], status=Status.UNUSED), recorded([(1, 2)])])
    (site,) = summarize(both)
    assert (site.status, site.reason) == (Status.KEPT, "")
    assert site.notes[:2] == (
        "0 calls in process 0, 1 call in process 1",
        "unused in process 0: it is in a loop of length 0; check the length of the loop",
    )


def test_status_that_all_processes_have_is_the_status():
    (site,) = summarize(merged([recorded([], status=Status.UNUSED)] * 2))
    assert (site.status, site.elided) == (Status.UNUSED, 2)
    assert site.reason == "it is in a loop of length 0"
    assert not any(note.startswith("unused") for note in site.notes)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("/tmp/ipykernel_12/3456.py", "/tmp/ipykernel_34/3456.py"),
        ("<ipython-input-3-abcdef>", "<ipython-input-7-abcdef>"),
    ],
)
def test_cells_with_the_same_source_are_one_cell(first, second):
    cells = [dataclasses.replace(HERE, file=file, cell=True) for file in (first, second)]
    both = merged([recorded([(1, 2)], site=cell, cells=[cell.file]) for cell in cells])
    (site,) = summarize(both)
    assert both.cells == (first,)
    assert (site.calls, site.where) == (2, "line 3")


def test_cells_with_different_source_are_kept_apart():
    cells = [
        dataclasses.replace(HERE, file=f"/tmp/ipykernel_{n}/{n}.py", cell=True) for n in (1, 2)
    ]
    both = merged([recorded([(1, 2)], site=cell, cells=[cell.file]) for cell in cells])
    assert [site.calls for site in summarize(both)] == [1, 1]


def test_runs_of_a_cell_are_matched_between_processes():
    runs = [f"<ipython-input-{n}-abc>" for n in (1, 2)]
    sites = [dataclasses.replace(HERE, file=run, cell=True) for run in runs]
    recorder = Recorder()
    for site in sites:
        record_call(recorder, LoweredSite(site, None, -1, (), ()), 1, 1, 2)
    both = merged([recorder.freeze(), recorder.freeze()])
    assert [site.calls for site in summarize(both)] == [2, 2]


def test_times_are_converted_to_the_clock_of_the_first_process():
    processes = [Process(0, "a", 1), Process(1, "b", 2, offset_ns=-500, error_ns=3_000)]
    both = merged([recorded([(1_000, 1_001)]), recorded([(1_400, 1_600)])], processes)
    assert [(call.process, call.start_ns, call.end_ns) for call in both] == [
        (0, 1_000, 1_001),
        (1, 900, 1_100),
    ]
    assert [compilation.end_ns for compilation in both.compilations] == [1_000, 500]
    assert both.environment["clocks"] == "compared, within 3 µs"


def test_different_environments_are_reported_by_process():
    parts = [{"jax": "0.1", "backend": "cpu"}, {"jax": "0.1", "backend": "gpu"}, {"jax": "0.1"}]
    both = merged([recorded([(1, 2)], environment=part) for part in parts])
    assert both.environment == {
        "jax": "0.1",
        "backend": "cpu (process 0); gpu (process 1); ? (process 2)",
        "processes": "3",
        "clocks": "shared",
    }


def test_overflow_runs_and_non_finite_results_of_all_processes_are_kept():
    part = dataclasses.replace(recorded([(1, 2)]), overflow=3)
    both = merged([part, part])
    assert both.overflow == 6
    assert {program.process: count for program, count in both.runs.items()} == {0: 1, 1: 1}
    assert [both.lowered[fact.lowered].process for fact in both.not_finite] == [0, 1]
    marked = {one.crossing: both.lowered[one.lowered].process for one in both.not_finite_calls}
    assert marked == {call.crossing: call.process for call in both}


def test_running_calls_name_their_process():
    running = Running(0, -1, 4, "MainThread", 9, (Frame("f", "m.py", 3),))
    part = dataclasses.replace(recorded([]), running=(running,), stale=frozenset({0}))
    both = merged([recorded([(1, 2)]), part])
    (found,) = both.running
    assert (found.lowered, found.thread) == (1, "process 1 · MainThread")
    assert both.stale == {1}
    assert "call 4 was still running" in to_text(both)


@pytest.mark.parametrize("suffix", [".jaxcb", ".json"])
def test_merged_recording_can_be_saved_and_loaded(tmp_path, suffix):
    both = merged([recorded([(1, 2)])] * 2, [Process(0, "a", 1), Process(1, "b", 2, 5, 7)])
    both.save(tmp_path / f"a{suffix}")
    back = jaxcb.load(tmp_path / f"a{suffix}")
    assert back.to_json() == both.to_json()
    assert back.processes == both.processes
    assert [call.process for call in back] == [0, 1]


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.html", "a.perfetto.json", "a.parquet"])
def test_every_export_takes_a_merged_recording(tmp_path, name):
    both = merged([recorded([(1, 2)])] * 2)
    both.save(tmp_path / name)
    assert (tmp_path / name).stat().st_size


def test_data_frame_has_the_process_of_each_call():
    table = merged([recorded([(1, 2)]), recorded([(3, 4)] * 2)]).to_pandas()
    assert table["process"].tolist() == [0, 1, 1]
    assert recorded([(1, 2)]).to_pandas()["process"].tolist() == [0]


def test_perfetto_has_a_track_for_the_compiler_of_each_process(tmp_path):
    """Compilations of two processes may overlap, but the slices of one track may not."""
    merged([recorded([(1, 2)])] * 2).save(tmp_path / "a.perfetto.json")
    events = json.loads((tmp_path / "a.perfetto.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    compiled = [names[e["tid"]] for e in events if e.get("cat") == "compile"]
    assert compiled == ["process 0 · compile by XLA", "process 1 · compile by XLA"]
    called = [names[e["tid"]] for e in events if e.get("cat") == "host call"]
    assert called == ["process 0 · MainThread", "process 1 · MainThread"]


def test_display_names_threads_with_their_process():
    data, metadata = to_mimebundle(merged([recorded([(1, 2)])] * 2))
    (measured,) = metadata.values()
    assert measured["threads"] == ["process 0 · MainThread", "process 1 · MainThread"]
    assert "1 call in each of 2 processes" in data["text/plain"]
    assert "1 call in each of 2 processes" in to_html(merged([recorded([(1, 2)])] * 2))


def test_repr_has_the_number_of_processes():
    assert repr(merged([recorded([(1, 2)])] * 2)) == (
        "<Recording of 2 host calls from 1 site in 2 processes>"
    )


@pytest.mark.parametrize(
    ("recordings", "message"),
    [
        (lambda one: [], "there are none"),
        (lambda one: [one, merged([one, one])], "number 1 already has 2 processes"),
        (lambda one: [one, dataclasses.replace(one, ahead=True)], "of jaxcb.explain"),
    ],
)
def test_recordings_that_cannot_be_merged_are_refused(recordings, message):
    with pytest.raises(ValueError, match=message):
        merged(recordings(recorded([])))


def test_gather_in_a_single_process_returns_its_argument():
    recording = recorded([(1, 2)])
    assert jaxcb.gather(recording) is recording


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(("nonsense",), TypeError), ((merged([recorded([])] * 2),), ValueError)],
)
def test_gather_in_a_single_process_refuses_wrong_arguments_too(arguments, error):
    with pytest.raises(error, match="cannot gather"):
        jaxcb.gather(*arguments)


@pytest.mark.parametrize("timeout", [0, -1, None, "5", float("nan")])
def test_invalid_timeout_is_an_error(timeout):
    with pytest.raises(ValueError, match=rf"timeout={timeout!r} is not a number above 0"):
        jaxcb.gather(recorded([]), timeout=timeout)


class FakeRendezvous:
    """A rendezvous in which the other process sends these times."""

    def __init__(self, times):
        self._times = iter(times)

    def post(self, name, data):
        pass

    def read(self, name, process):
        return struct.pack("<q", next(self._times))


@pytest.mark.parametrize(("index", "found"), [(0, {"most": [0, -1_000]}), (1, {"least": 1_000})])
def test_fastest_message_bounds_the_difference(index, found, monkeypatch):
    """The other clock is ahead by 1,000 ns; messages take 0, 2, 4 ... ns."""
    now = itertools.count(0, 5)
    monkeypatch.setattr(_gather, "time", SimpleNamespace(perf_counter_ns=now.__next__))
    # Each round reads the clock twice: before and after the message arrives.
    arrivals = [10 * n + 5 for n in range(_gather._ROUNDS)]
    sent = [arrival + 1_000 - 2 * n for n, arrival in enumerate(arrivals)]
    assert _gather._compare_clocks(FakeRendezvous(sent), index, 2) == found
