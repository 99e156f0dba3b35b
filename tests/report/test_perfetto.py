"""The timeline is parsed back and checked against the Chrome trace event format."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_jaxcb.recording import Compilation, Program, Recorder

from ._several import FAILED, SEVERAL, recordings, saved


def events(recording, tmp_path):
    return json.loads(saved(recording, tmp_path, ".perfetto.json"))["traceEvents"]


@recordings
def test_trace_conforms_to_the_format(recording, tmp_path):
    """Check what the trace event specification requires of metadata (M) and complete (X) events."""
    whole = json.loads(saved(recording, tmp_path, ".perfetto.json"))
    assert whole["displayTimeUnit"] in ("ms", "ns")
    named = set()
    for event in whole["traceEvents"]:
        assert event["ph"] in ("M", "X")
        assert type(event["pid"]) is type(event["tid"]) is int
        assert isinstance(event["name"], str) and isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            named.add((event["name"], event["pid"], event["tid"]))
        else:
            assert event["ts"] >= 0 and event["dur"] >= 0
            assert isinstance(event["cat"], str)
            assert ("process_name", event["pid"], 0) in named
            assert ("thread_name", event["pid"], event["tid"]) in named
    threads = [tid for kind, _, tid in named if kind == "thread_name"]
    # No two processes share a `tid`, because Perfetto identifies threads by it alone.
    assert len(threads) == len(set(threads))


def test_trace_has_every_call_crossing_and_compilation(tmp_path):
    slices = [event for event in events(SEVERAL, tmp_path) if event["ph"] == "X"]
    by_kind = {
        kind: [e for e in slices if e["cat"] == kind]
        for kind in ("host call", "crossing", "lower", "compile")
    }
    assert {kind: len(found) for kind, found in by_kind.items()} == {
        "host call": len(SEVERAL), "crossing": 1, "lower": 1, "compile": 1
    }  # fmt: skip
    (crossing,) = by_kind["crossing"]
    elements = [e for e in by_kind["host call"] if e["args"]["crossing"] == 3]
    assert [e["args"]["element"] for e in elements] == [0, 1, 2]
    assert crossing["ts"] == elements[0]["ts"]
    assert crossing["dur"] == pytest.approx(sum(e["dur"] for e in elements))
    failed = [e["args"]["error"] for e in by_kind["host call"] if "error" in e["args"]]
    assert failed == [FAILED]
    lower, compile = by_kind["lower"][0], by_kind["compile"][0]
    assert (lower["ts"], lower["dur"], compile["dur"]) == (0, 2, 30)
    assert compile["ts"] == 2
    assert by_kind["host call"][0]["ts"] == 100 - (90.5 - 32)  # the first event is at 0


def test_slices_of_a_thread_are_nested_in_the_order_of_the_file(tmp_path):
    rows = [e for e in events(SEVERAL, tmp_path) if e["ph"] == "X" and e["pid"] == 1]
    assert [e["ts"] for e in rows] == sorted(e["ts"] for e in rows)
    assert partly_overlapping(rows) == []
    assert [e["cat"] for e in rows][3:] == ["crossing", *["host call"] * 3]


def partly_overlapping(slices):
    """Return the pairs of slices of one thread that overlap without nesting."""
    found = []
    for first, other in itertools.combinations(slices, 2):
        (a, b), (c, d) = sorted(
            (round(e["ts"], 3), round(e["ts"] + e["dur"], 3)) for e in (first, other)
        )
        if a < c < b < d:
            found.append((first, other))
    return found


@given(
    spans=st.lists(st.tuples(*(st.integers(0, 9_000) for _ in range(3))), min_size=1, max_size=12)
)
def test_compilations_of_several_threads_never_partly_overlap_on_one_track(spans, tmp_path_factory):
    recorder = Recorder(clock=lambda: 0)
    for number, (lower, compile, wait) in enumerate(spans):
        program = Program("jit_f", "cpu", number)
        end = 20_000 + lower + compile + wait
        recorder.add_compilation(Compilation(program, 1, (), lower, compile, end_ns=end))
    tracks, names = {}, {}
    for event in events(recorder.freeze(), tmp_path_factory.mktemp("trace")):
        key = event["pid"], event["tid"]
        if event["ph"] == "X":
            tracks.setdefault(key, []).append(event)
        elif event["name"] == "thread_name":
            names[key] = event["args"]["name"]
    assert sum(map(len, tracks.values())) == 2 * len(spans)
    assert set(tracks) <= set(names)
    for key, slices in tracks.items():
        assert partly_overlapping(slices) == []
        (phase,) = {event["cat"] for event in slices}
        assert names[key].startswith(phase)
