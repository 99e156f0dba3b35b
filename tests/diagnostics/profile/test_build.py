"""How a block is divided, with made-up events, calls and samples: their figures are known exactly.

Times are in nanoseconds; a block has 1,000 of them.
"""

import numpy as np

from jupyter_jaxcb.diagnostics.profile._build import Collected, build
from jupyter_jaxcb.diagnostics.profile._compilations import Stage
from jupyter_jaxcb.diagnostics.profile._events import Events, Key
from jupyter_jaxcb.diagnostics.profile._samples import Samples
from jupyter_jaxcb.diagnostics.profile._session import Gap
from jupyter_jaxcb.diagnostics.profile._spans import spans as span_table
from jupyter_jaxcb.recording import (
    PYTHON_OF_JAX,
    Frame,
    LoweredSite,
    Program,
    QueueUse,
    Recording,
    Site,
    Unknown,
    Worker,
)
from jupyter_jaxcb.recording._facts import ROW

WALL = 1000
CALLBACK = "jaxcb_pure_callback.1"  # of a program that is gone, so its first call names it
RUN = ("dispatch", "step")
HERE, THERE = Frame("train", "model.py", 3), Frame("load", "model.py", 9)


def read(lanes):
    """The events of threads and devices, by name; each event is start, end, kind and name."""
    rows = [(*event, lane) for lane, events in enumerate(lanes.values()) for event in events]
    keys = [Key(kind.removeprefix("rest of "), name, is_rest=kind.startswith("rest"))
            for _, _, kind, name, _ in rows]  # fmt: skip
    starts, ends, lane = (np.array([row[n] for row in rows], np.int64) for n in (0, 1, 4))
    table = span_table(starts, ends, np.arange(len(rows)), lane)
    return Events(table, keys, list(lanes), list(lanes).index("own"), len(rows), 0)


def recorded(*calls, queued=(), threads=("MainThread",), **facts):
    """A recording; a call is start, end, name of the function, thread and crossing."""
    names = list(dict.fromkeys(call[2] for call in calls))
    lowered = tuple(
        LoweredSite(
            Site("pure", name, "model.py", number, 0, cell=False), Program("jit_step", ""), number,
            (), (), queued=name in queued,
        )
        for number, name in enumerate(names)
    )  # fmt: skip
    rows = np.zeros(len(calls), ROW)
    for number, (start, end, name, *more) in enumerate(calls):
        thread, crossing = (*more, *(0, number)[len(more) :])
        rows[number] = (start, end, names.index(name), crossing, 0, thread, 0, 0, 0)
    return Recording(lowered=lowered, calls=rows, threads=threads, **facts)


def built(recording=None, own=(), cpu=(0, 0), times=(0, WALL), places=(), gaps=(), stages=(),
          **others):  # fmt: skip
    """The profile of the events of the block's own thread and of others, whose names may lack
    punctuation; a place is a line, and whether JAX's own Python runs for it."""
    lanes = {"own": own, **others}
    samples = Samples(np.array(times), np.array(cpu), places or [(None, False)] * len(times))
    profile = build(
        Collected(0, WALL, "MainThread", 1, Recording() if recording is None else recording,
                  [read(lanes)], 0, 0, gaps, samples, stages, ())
    )  # fmt: skip
    assert sum(part.wall_ns for part in profile.parts) == WALL
    return profile


def wall(profile):
    """The wall time of each part that has any, by kind and name."""
    return {(str(one.kind), one.name): one.wall_ns for one in profile.parts if one.wall_ns}


def the(profile, kind):
    (part,) = (part for part in profile.parts if part.kind == kind)
    return part


def spans(profile, name):
    """What a lane draws: start, end and name."""
    (found,) = (lane.spans for lane in profile.lanes if lane.name == name)
    triples = zip(found[::3], found[1::3], found[2::3], strict=True)
    return [(start, start + ns, profile.parts[part].name) for start, ns, part in triples]


def test_each_instant_belongs_to_the_first_kind_that_applies():
    profile = built(
        recorded((200, 600, "f")),
        own=[(0, 800, *RUN), (100, 700, "xla", CALLBACK), (750, 780, "copy", "device_put")],
        tf_XLA=[(50, 900, "xla", "dot.1")],
        stages=[Stage(0, 60, "step", 1, is_last=True)],
    )
    assert wall(profile) == {
        ("host", "f"): 400,
        ("crossing", "f"): 200,
        ("copy", "device_put"): 30,
        ("xla", "dot"): 850 - 600 - 30,
        ("compilation", "step"): 50,
        ("idle", ""): 100,
    }


def test_among_equals_the_shorter_one_counts_and_only_ten_parts_of_a_kind_are_named():
    inner = [(10 * n, 10 * n + 9 - n // 2, "xla", f"op{n}.1") for n in range(12)]
    profile = built(tf_XLA=[(0, 900, "xla", "outer.1"), *inner])
    parts = [part for part in profile.parts if part.kind == "xla"]
    inside = [9 - n // 2 for n in range(12)]
    assert [part.wall_ns for part in parts] == [900 - sum(inside), *inside[:9], sum(inside[9:])]
    assert (parts[-1].name, parts[-1].times) == ("other", 3)


def test_free_time_is_python_as_far_as_the_thread_has_cpu_time_by_line():
    profile = built(own=[(0, 400, *RUN)], cpu=(0, 700))
    assert wall(profile) == {("dispatch", "step"): 400, ("python", ""): 300, ("idle", ""): 300}
    profile = built(
        times=(0, 250, 500, 750, 1000), cpu=(0, 250, 500, 750, 750),
        places=[(None, False), (HERE, True), (HERE, True), (THERE, False), (THERE, False)],
    )  # fmt: skip
    assert wall(profile) == {
        ("dispatch", PYTHON_OF_JAX): 500, ("python", "load"): 250, ("idle", "load"): 250,
    }  # fmt: skip
    assert the(profile, "dispatch")[2:] == (HERE, 500, 0, 0, -1)
    drawn = [(0, 500, PYTHON_OF_JAX), (500, 750, "load"), (750, 1000, "load")]
    assert spans(profile, "wall time") == drawn


def test_queued_call_counts_while_the_program_waits_for_it():
    calls = recorded((100, 900, "log", 1), queued=("log",), threads=("", "queue 1"))
    profile = built(calls, cpu=(0, 300))
    assert wall(profile) == {("queued", "log"): 700, ("python", ""): 300}
    assert spans(profile, "queue 1") == [(100, 900, "log")]


def test_work_of_a_device_counts_before_waiting_for_it():
    profile = built(
        own=[(0, 100, *RUN)], GPU=[(50, 800, "xla", "gemm"), (750, 900, "copy", "MemcpyD2H")]
    )
    assert wall(profile) == {
        ("dispatch", "step"): 50,
        ("xla", "gemm"): 700,
        ("copy", "MemcpyD2H"): 150,
        ("idle", ""): 100,
    }
    assert spans(profile, "GPU") == [(50, 750, "gemm"), (750, 900, "MemcpyD2H")]


def test_two_devices_do_not_share_an_event_that_contains_the_calls_of_both():
    calls = recorded((10, 400, "f", 0), (20, 410, "f", 1), threads=("Dummy-1", "Dummy-2"))
    events = {"tf_1": [(0, 500, "xla", CALLBACK)], "tf_2": [(5, 520, "xla", CALLBACK)]}
    host = the(built(calls, **events), "host")
    assert (host.wall_ns, host.busy_ns) == (400, 2 * 390)


def test_workers_are_not_in_the_lane_of_the_crossing_that_waits_for_them():
    profile = built(
        recorded((100, 500, "f", 0, 0), (100, 700, "f", 1, 0), threads=("worker 1", "worker 2"),
                 workers=tuple(Worker(n, "", 1, "", 0) for n in range(2))),
        own=[(0, 1000, "xla", CALLBACK)],
    )  # fmt: skip
    assert spans(profile, "worker 2") == [(100, 700, "f")]
    assert [lane.name for lane in profile.lanes][1:] == ["main thread", "worker 1", "worker 2"]
    host, crossing = the(profile, "host"), the(profile, "crossing")
    assert (host.wall_ns, host.busy_ns, crossing.busy_ns) == (600, 1000, 400)


def test_thread_of_python_has_the_name_that_its_calls_have():
    calls = recorded((20, 30, "f"), threads=("loader",))
    profile = built(calls, python=[(0, 100, *RUN), (10, 50, "xla", CALLBACK)])
    assert [lane.name for lane in profile.lanes] == ["wall time", "loader"]


def test_waiting_for_a_full_queue_is_taken_from_the_crossings():
    """Those of a queued callback have no call in them: its program must tell."""
    calls, use = [(20, 30, "log"), (0, 10, "f")], (QueueUse(0, waits=1, waited_ns=300),)
    events = [(15, 400, "xla", CALLBACK)]
    found = wall(built(recorded(*calls, queued=("log",), queue=use), own=events))
    assert ("waiting", "log") not in found
    found = wall(built(recorded(*calls, queue=use), own=events))
    assert (found["waiting", "log"], found["crossing", "log"]) == (300, 385 - 10 - 300)


def test_copy_that_goes_on_in_another_thread_is_counted_once():
    profile = built(
        own=[(0, 100, "copy", "device_put"), (500, 510, "copy", "device_put")],
        tf_XLA=[(50, 300, "rest of copy", "device_put")],
    )
    assert the(profile, "copy")[3:6] == (310, 360, 2)


def test_dispatch_that_the_profiler_did_not_see_end_is_unknown_from_its_first_operation():
    profile = built(
        own=[(0, 100, *RUN), (200, 250, "xla", "dot.1")], gaps=[Gap(400, 0, Unknown.EVENTS)]
    )
    assert wall(profile) == {
        ("dispatch", "step"): 100, ("idle", ""): 100, ("xla", "dot"): 50,
        ("unknown", "too many events"): 750,
    }  # fmt: skip
