"""Executor workers in timelines and displays, and the wall time of what they make side by side."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from tests.interface import (
    ROW,
    LoweredSite,
    Program,
    Recorder,
    Recording,
    Site,
    Worker,
    finished,
    record_call,
    summarize,
    to_text,
)

from ._several import data_of, f32, level, saved

SITE = Site("pure", "simulate", "<cell>", 3, 0, cell=True)
LEVELS = (level(2, "sequential", (True,)),)
FACT = LoweredSite(SITE, Program("jit_f", "cpu"), 0, (f32(2),), (f32(2),), LEVELS)
PLAIN = LoweredSite(SITE, Program("jit_f", "cpu"), 0, (), ())


def recorded(*workers, recorder=None, since=None):
    """Return a recording of two batch elements per worker, queued for 5 ns; a worker is its pid.

    A worker with a host in front of its pid runs there.
    """
    recorder = recorder or Recorder(clock=lambda: 0)
    record_call(recorder, PLAIN, 1, 0, 1)  # so that this process has the first thread
    crossing = recorder.crossing()
    for n, where in enumerate(workers):
        host, pid = where if isinstance(where, tuple) else ("another machine", where)
        worker = SimpleNamespace(host=host, pid=pid, thread=0, name="MainThread")
        elements = np.array([2 * n, 2 * n + 1])
        rows = recorder.worker_rows(worker, elements, [10, 20, 30], 5, 35)
        rows["crossing"], rows["version"] = crossing, 1
        recorder.called(rows.tobytes())
    return recorder.freeze(since)


def test_trace_shows_elements_on_tracks_of_workers_and_keeps_equal_pids_apart(tmp_path):
    """A crossing split among workers has no slice: it would partly overlap the next crossing."""
    recording = recorded(1, 300, ("a third machine", 300))
    events = json.loads(saved(recording, tmp_path, ".perfetto.json"))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(names.values()) == [
        "compilation",
        "host calls",
        "worker process 1 · another machine",
        "worker process 300 · a third machine",
        "worker process 300 · another machine",
    ]
    slices = [e for e in events if e["ph"] == "X"]
    assert [e["cat"] for e in slices] == ["host call"] * 7
    assert {names[e["pid"]] for e in slices} == {*names.values()} - {"compilation"}
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in slices} < named
    waited = [e["args"].get("waited_us") for e in slices]
    assert waited == [None, *[0.005] * 3, *[None] * 3]


def test_display_shows_calls_and_queue_time_of_each_worker_of_the_recording():
    """They are in the metadata, because the data must be the same in every run."""
    recording = recorded(11, 12)
    data, measured = data_of(recording)
    assert measured["by_worker"] == [
        "4 calls by 2 workers: worker 1 · pid 11 · another machine: 2, worker 2 · pid 12 · another "
        "machine: 2; waited 10 ns for a worker, ran 40 ns (20 % waiting)"
    ]
    assert measured["by_worker"][0] in to_text(recording)
    assert "queued" not in to_text(recording, times=False) and "by_worker" not in data
    recorder = Recorder(clock=lambda: 0)
    recorded(11, recorder=recorder)  # it still has this worker
    (line,) = data_of(recorded(12, recorder=recorder, since=recorder.mark()))[1]["by_worker"]
    assert line.startswith("2 calls by 1 worker: worker 2 · pid 12 · another machine: 2; waited")


def side_by_side(*more, fact=FACT):
    """Return a recording of calls: crossing, thread, queued, start, end; thread 0 is XLA's."""
    rows = [(1, 1, 10, 110, 200), (1, 2, 20, 120, 230), *more]
    calls, threads = np.zeros(len(rows), ROW), ("MainThread", "worker 1", "worker 2")
    for number, column in enumerate(("crossing", "thread", "queued_ns", "start_ns", "end_ns")):
        calls[column] = [row[number] for row in rows]
    workers = tuple(Worker(one, threads[one], 1, "host", 0) for one in (1, 2))
    return Recording(lowered=(fact,), calls=calls, threads=threads, workers=workers)


@pytest.mark.parametrize(
    ("recording", "wall_ns"),
    [
        (side_by_side(), 130),  # from 100, when the chunks were sent
        (side_by_side((2, 1, 0, 1_000, 1_010)), 140),  # time between two crossings is not theirs
        (side_by_side((2, 1, 0, 150, 220)), 130),  # two devices cross at once
        (side_by_side((2, 0, 0, 1_000, 1_010)), 0),  # one call ran on XLA's thread
        (side_by_side(fact=dataclasses.replace(FACT, queued=True)), 0),  # no program waits
    ],
)
def test_wall_time_is_that_of_the_crossings_and_is_unknown_if_a_call_ran_elsewhere(
    recording, wall_ns
):
    (summary,) = summarize(recording)
    assert summary.wall_ns == finished(summary).measured()["wall_ns"] == wall_ns
