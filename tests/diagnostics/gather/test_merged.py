"""Merged recordings of several processes: reports, files and exports."""

import dataclasses
import json

import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Frame, LoweredSite, Process, Recorder, Running, Status, merged
from jupyter_jaxcb.report import summarize, to_html, to_mimebundle, to_text

from ._recorded import HERE, recorded


def test_sites_of_one_place_are_one_site():
    both = merged([recorded([(1, 2)]), recorded([(3, 4), (5, 6)])])
    (site,) = summarize(both)
    assert dict(both.bound) == {HERE: 2}
    assert site.calls == site.expected == 3
    assert site.notes[0] == "1 call in process 0, 2 calls in process 1"


def test_equal_counts_are_reported_once():
    four = merged([recorded([(1, 2)])] * 3 + [recorded([])])
    assert summarize(four)[0].notes[0] == "1 call in processes 0-2, 0 calls in process 3"
    two = merged([recorded([(1, 2)])] * 2)
    assert summarize(two)[0].notes[0] == "1 call in each of 2 processes"


def test_a_compilation_in_each_process_is_no_repeated_one():
    (site,) = summarize(merged([recorded([(1, 2)])] * 3))
    assert not any("compiled" in note for note in site.notes)


def test_functions_of_two_processes_are_not_taken_for_one():
    """Each process numbers its own from 1."""
    three = merged([recorded([(1, 2)])] * 3).compilations
    assert [(one.function, one.code) for one in three] == [(1, 1), (2, 2), (3, 3)]


def test_binds_of_a_line_are_those_of_all_processes():
    again = Recorder()
    again.bound(HERE)
    again.bound(HERE)
    both = merged([again.freeze(), recorded([]), recorded([])])
    assert dict(both.bound) == {HERE: 4}


def test_statuses_that_differ_are_reported_by_process():
    both = merged([recorded([], status=Status.UNUSED), recorded([(1, 2)])])
    (site,) = summarize(both)
    assert (site.status, site.reason) == (Status.KEPT, "")
    assert site.notes[:2] == (
        "0 calls in process 0, 1 call in process 1",
        "unused in process 0: it is in a loop of length 0; check the length of the loop",
    )


def test_one_status_of_all_is_the_status():
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
def test_cells_of_equal_text_are_one_place(first, second):
    cells = [dataclasses.replace(HERE, file=file, cell=True) for file in (first, second)]
    both = merged([recorded([(1, 2)], site=cell, cells=[cell.file]) for cell in cells])
    (site,) = summarize(both)
    assert both.cells == (first,)
    assert (site.calls, site.where) == (2, "line 3")


def test_cells_of_other_text_stay_apart():
    cells = [
        dataclasses.replace(HERE, file=f"/tmp/ipykernel_{n}/{n}.py", cell=True) for n in (1, 2)
    ]
    both = merged([recorded([(1, 2)], site=cell, cells=[cell.file]) for cell in cells])
    assert [site.calls for site in summarize(both)] == [1, 1]


def test_a_cell_that_ran_twice_in_a_process_is_two_places_in_the_other_too():
    runs = [f"<ipython-input-{n}-abc>" for n in (1, 2)]
    sites = [dataclasses.replace(HERE, file=run, cell=True) for run in runs]
    own = Recorder()
    for site in sites:
        own.called(LoweredSite(site, None, -1, (), ()), 1, 1, 2)
    both = merged([own.freeze(), own.freeze()])
    assert [site.calls for site in summarize(both)] == [2, 2]


def test_times_are_those_of_the_first_process():
    processes = [Process(0, "a", 1), Process(1, "b", 2, offset_ns=-500, error_ns=3_000)]
    both = merged([recorded([(1_000, 1_001)]), recorded([(1_400, 1_600)])], processes)
    assert [(call.process, call.start_ns, call.end_ns) for call in both] == [
        (0, 1_000, 1_001),
        (1, 900, 1_100),
    ]
    assert [one.end_ns for one in both.compilations] == [1_000, 500]
    assert both.environment["clocks"] == "compared, within 3 µs"


def test_an_environment_that_differs_is_reported_by_process():
    own = [{"jax": "0.1", "backend": "cpu"}, {"jax": "0.1", "backend": "gpu"}, {"jax": "0.1"}]
    both = merged([recorded([(1, 2)], environment=one) for one in own])
    assert both.environment == {
        "jax": "0.1",
        "backend": "cpu (process 0); gpu (process 1); ? (process 2)",
        "processes": "3",
        "clocks": "shared",
    }


def test_overflow_and_runs_and_bad_numbers_are_those_of_all():
    one = dataclasses.replace(recorded([(1, 2)]), overflow=3)
    both = merged([one, one])
    assert both.overflow == 6
    assert {program.process: count for program, count in both.runs.items()} == {0: 1, 1: 1}
    assert [both.lowered[fact.lowered].process for fact in both.not_finite] == [0, 1]


def test_running_calls_name_their_process():
    still = Running(0, -1, 4, "MainThread", 9, (Frame("f", "m.py", 3),))
    one = dataclasses.replace(recorded([]), running=(still,), stale=frozenset({0}))
    both = merged([recorded([(1, 2)]), one])
    (found,) = both.running
    assert (found.lowered, found.thread) == (1, "process 1 · MainThread")
    assert both.stale == {1}
    assert "call 4 was still running" in to_text(both)


@pytest.mark.parametrize("suffix", [".jaxcb", ".json"])
def test_a_merged_recording_goes_to_a_file_and_comes_back(tmp_path, suffix):
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


def test_tables_have_the_process_of_each_call():
    table = merged([recorded([(1, 2)]), recorded([(3, 4)] * 2)]).to_pandas()
    assert table["process"].tolist() == [0, 1, 1]
    assert recorded([(1, 2)]).to_pandas()["process"].tolist() == [0]


def test_perfetto_has_a_track_for_the_compiler_of_each_process(tmp_path):
    """Compilations of two processes overlap, which slices of one track may not."""
    merged([recorded([(1, 2)])] * 2).save(tmp_path / "a.perfetto.json")
    events = json.loads((tmp_path / "a.perfetto.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    compiled = [names[e["tid"]] for e in events if e.get("cat") == "compile"]
    assert compiled == ["process 0 · compile by XLA", "process 1 · compile by XLA"]
    called = [names[e["tid"]] for e in events if e.get("cat") == "host call"]
    assert called == ["process 0 · MainThread", "process 1 · MainThread"]


def test_a_display_names_threads_with_their_process():
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


def test_alone_a_process_has_its_own_recording():
    one = recorded([(1, 2)])
    assert jaxcb.gather(one) is one


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nonsense",), TypeError),
        ((merged([recorded([])] * 2),), ValueError),
    ],
)
def test_alone_the_same_mistakes_are_reported(arguments, error):
    with pytest.raises(error, match="cannot gather"):
        jaxcb.gather(*arguments)


@pytest.mark.parametrize("timeout", [0, -1, None, "5", float("nan")])
def test_a_timeout_that_cannot_be_is_reported(timeout):
    with pytest.raises(ValueError, match=rf"timeout={timeout!r} is not a number above 0"):
        jaxcb.gather(recorded([]), timeout=timeout)
