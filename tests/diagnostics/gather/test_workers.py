"""Executor workers in merged recordings, traces and displays."""

import json
import os
from types import SimpleNamespace

import numpy as np

from jupyter_jaxcb.recording import (
    LoweredSite,
    Process,
    Program,
    Recorder,
    Recording,
    Site,
    WorkerRows,
    merged,
    record_call,
)
from jupyter_jaxcb.report import export, to_mimebundle
from jupyter_jaxcb.report.text._other_threads import by_worker

SITE = LoweredSite(
    Site("pure", "f", "a.py", 1, 0, cell=False), Program("jit_f", "cpu"), 0, (), (), ()
)


def recorded(*pids, host="another machine", recorder=None):
    """Return a recording of two batch elements per worker, one worker per pid, queued for 5 ns."""
    recorder = recorder or Recorder(clock=lambda: 0)
    record_call(recorder, SITE, 1, 0, 1)  # so that this process has the first thread
    crossing = recorder.crossing()
    for n, pid in enumerate(pids):
        worker = SimpleNamespace(host=host, pid=pid, thread=0, name="MainThread")
        elements = np.array([2 * n, 2 * n + 1])
        rows = recorder.worker_rows(WorkerRows(worker, elements, [10, 20, 30], 5, 35))
        rows["crossing"], rows["version"] = crossing, 1
        recorder.called(rows.tobytes())
    return recorder.freeze()


def test_workers_keep_their_threads_and_calls_when_merged():
    processes = [Process(0, "here", 1), Process(1, "there", 1, 100, 7)]
    first, second = recorded(11, 12), recorded(21)
    both = merged([first, second], processes)
    threads = [both.threads[worker.thread] for worker in both.workers]
    assert [worker.pid for worker in both.workers] == [11, 12, 21]
    assert [(name.startswith("process 1"), name.rpartition(" · ")[0][-6:]) for name in threads] == [
        (False, "pid 11"),
        (False, "pid 12"),
        (True, "pid 21"),
    ]
    for worker in both.workers:
        elements = [call.element for call in both if call.thread == worker.thread]
        assert len(elements) == 2
    errors = [worker.clock_error_ns for worker in (*first.workers, *second.workers)]
    assert [worker.clock_error_ns for worker in both.workers] == [*errors[:2], errors[2] + 7]
    assert sorted(call.queued_ns for call in both) == sorted(
        call.queued_ns for part in (first, second) for call in part
    )
    assert Recording.from_json(both.to_json()).workers == both.workers


def test_equal_pids_of_two_machines_are_kept_apart(tmp_path):
    here, there = recorded(1, 2, 300), recorded(300, host="a third machine")
    export(merged([here, there]), tmp_path / "all.perfetto.json")
    events = json.loads((tmp_path / "all.perfetto.json").read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(names.values()) == [
        "compilation",
        "host calls",
        "worker process 1 · another machine",
        "worker process 2 · another machine",
        "worker process 300 · a third machine",
        "worker process 300 · another machine",
    ]
    of_workers = [e for e in events if e["ph"] == "X" and e["cat"] == "host call"]
    assert {names[e["pid"]] for e in of_workers} == {*names.values()} - {"compilation"}
    assert os.getpid() not in names


def test_trace_shows_elements_of_workers_on_named_tracks(tmp_path):
    """A crossing split among workers has no slice: it would partly overlap the next crossing."""
    export(recorded(1, 2), tmp_path / "all.perfetto.json")
    events = json.loads((tmp_path / "all.perfetto.json").read_text())["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    assert [e["cat"] for e in slices] == ["host call"] * 5
    assert {(e["pid"], e["tid"]) for e in slices} < named
    assert [e["args"].get("waited_us") for e in slices] == [None, 0.005, 0.005, None, None]


def test_display_shows_calls_and_queue_time_of_each_worker():
    """They are in the metadata, because the data must be the same in every run."""
    data, metadata = to_mimebundle(recorded(11, 12))
    (measured,) = metadata.values()
    assert measured["by_worker"] == [
        "4 calls by 2 workers: worker 1 · pid 11 · another machine: 2, worker 2 · pid 12 · another "
        "machine: 2; waited 10 ns for a worker, ran 40 ns (20 % waiting)"
    ]
    assert not any("queued" in str(text) for text in data.values())


def test_workers_without_calls_in_the_recording_are_not_counted():
    """The recorder still has the workers of earlier calls."""
    recorder = Recorder(clock=lambda: 0)
    recorded(11, recorder=recorder)
    since = recorder.mark()
    recorded(12, recorder=recorder)
    (line,) = by_worker(recorder.freeze(since))
    assert line.startswith("2 calls by 1 worker: worker 2 · pid 12 · another machine: 2; waited")
