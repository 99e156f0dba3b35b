"""How a block is divided, with made-up events, calls and samples: their figures are known exactly.

Times are in nanoseconds; a block has 1,000 of them.
"""

import numpy as np

from jupyter_jaxcb.diagnostics.profile._build import Collected, build
from jupyter_jaxcb.diagnostics.profile._compilations import Stage
from jupyter_jaxcb.diagnostics.profile._division import Samples
from jupyter_jaxcb.diagnostics.profile._events import Events, Key, LaneEvents
from jupyter_jaxcb.recording import (
    PYTHON_OF_JAX,
    Frame,
    LoweredSite,
    Program,
    QueueUse,
    Recording,
    Site,
    Worker,
)
from jupyter_jaxcb.recording._facts import ROW

WALL = 1000
CALLBACK = "jaxcb_pure_callback.1"  # of a program that is gone, so its first call names it
RUN = ("dispatch", "step")


def lane(name, *events, is_own=False, is_device=False):
    """A thread or device; an event is start, end, kind and name; "rest" goes on with a copy."""
    return name, events, is_own, is_device


def read(*lanes):
    keys, found = {}, []
    for name, rows, is_own, is_device in lanes:
        own = [
            Key("copy", title, is_rest=True) if kind == "rest" else Key(kind, title)
            for _, _, kind, title in rows
        ]
        numbers = [keys.setdefault(key, len(keys)) for key in own]
        starts, ends = (np.array([row[n] for row in rows], np.int64) for n in (0, 1))
        found.append(
            LaneEvents(name, is_device, starts, ends, np.array(numbers, np.int64), [], is_own)
        )
    return Events(found, list(keys), sum(len(rows) for _, rows, _, _ in lanes))


def recorded(*calls, queued=(), threads=("MainThread",), **facts):
    """A recording; a call is start, end, name of the function, and optionally its thread."""
    names = list(dict.fromkeys(call[2] for call in calls))
    lowered = tuple(
        LoweredSite(
            Site("pure", name, "model.py", number, 0, cell=False), Program("jit_step", ""), number,
            (), (), queued=name in queued,
        )
        for number, name in enumerate(names)
    )  # fmt: skip
    rows = np.zeros(len(calls), ROW)
    for crossing, row in enumerate(rows):
        start, end, name, *thread = calls[crossing]
        row["start_ns"], row["end_ns"], row["lowered"] = start, end, names.index(name)
        row["thread"] = thread[0] if thread else 0
        row["crossing"] = crossing
    return Recording(lowered=lowered, calls=rows, threads=threads, **facts)


def built(
    *lanes, more=(), recording=None, cpu=(0, 0), times=(0, WALL), places=None, in_jax=(), gaps=(),
    stages=(),
):  # fmt: skip
    jax = np.isin(np.arange(len(times)), in_jax)  # the samples in which JAX's own Python runs
    samples = Samples(np.array(times), np.array(cpu), places or [None] * len(times), jax)
    profile = build(
        Collected(
            0, WALL, "main thread", 1, Recording() if recording is None else recording,
            [read(*part) for part in (lanes, *more) if part], 0, 0, gaps, samples, stages, (),
        )
    )  # fmt: skip
    assert sum(part.wall_ns for part in profile.parts) == WALL
    return profile


def wall(profile):
    """The wall time of each part that has any, by kind and name."""
    return {(str(one.kind), one.name): one.wall_ns for one in profile.parts if one.wall_ns}


def times(profile):
    return {(str(part.kind), part.name): part.times for part in profile.parts}


def spans(profile, name):
    """What a lane draws: start, end and name."""
    (found,) = (lane.spans for lane in profile.lanes if lane.name == name)
    triples = zip(found[::3], found[1::3], found[2::3], strict=True)
    return [(start, start + ns, profile.parts[part].name) for start, ns, part in triples]


def test_each_instant_belongs_to_the_first_kind_that_applies():
    profile = built(
        lane("python", (0, 800, *RUN), (100, 700, "xla", CALLBACK),
             (750, 780, "copy", "device_put"), is_own=True),
        lane("tf_XLA/1", (50, 900, "xla", "dot.1")),
        recording=recorded((200, 600, "f")),
        stages=[Stage("compile", "step", 0, 60, 1)],
    )  # fmt: skip
    assert wall(profile) == {
        ("host", "f"): 400,
        ("crossing", "f"): 200,
        ("copy", "device_put"): 30,
        ("xla", "dot"): 850 - 600 - 30,
        ("compilation", "step"): 50,
        ("idle", ""): 100,
    }


def test_free_time_is_python_as_far_as_the_thread_has_cpu_time():
    profile = built(lane("python", (0, 400, *RUN), is_own=True), cpu=(0, 700))
    assert wall(profile) == {("dispatch", "step"): 400, ("python", ""): 300, ("idle", ""): 300}


def test_free_time_is_named_by_the_line_of_the_samples():
    here, there = Frame("load", "model.py", 3), Frame("wait", "model.py", 9)
    profile = built(
        times=(0, 250, 500, 750, 1000), cpu=(0, 250, 500, 500, 500),
        places=[None, here, here, there, None],
    )  # fmt: skip
    assert wall(profile) == {("python", "load"): 500, ("idle", "wait"): 500}


def test_pythons_time_in_jax_is_a_part_of_dispatch_at_the_line_that_calls_jax():
    here, there = Frame("train", "model.py", 3), Frame("load", "model.py", 9)
    profile = built(
        times=(0, 250, 500, 750, 1000), cpu=(0, 250, 500, 750, 750),
        places=[None, here, here, there, None], in_jax=[1, 2],
    )  # fmt: skip
    assert wall(profile) == {
        ("dispatch", PYTHON_OF_JAX): 500,
        ("python", "load"): 250,
        ("idle", ""): 250,
    }
    (part,) = (one for one in profile.parts if one.kind == "dispatch")
    assert (part.place, part.times) == (here, 0)
    assert spans(profile, "wall time") == [
        (0, 500, PYTHON_OF_JAX), (500, 750, "load"), (750, 1000, ""),
    ]  # fmt: skip


def test_queued_call_counts_while_the_program_waits_for_it():
    profile = built(
        recording=recorded((100, 900, "log", 1), queued=("log",), threads=("", "queue 1")),
        cpu=(0, 300),
    )
    assert wall(profile) == {("queued", "log"): 700, ("python", ""): 300}


def test_work_of_a_device_counts_before_waiting_for_it():
    profile = built(
        lane("python", (0, 100, *RUN), is_own=True),
        lane("GPU:0 Stream #13(Compute)", (50, 800, "xla", "gemm"), is_device=True),
        lane("GPU:0 Stream #14(MemcpyD2H)", (750, 900, "copy", "MemcpyD2H"), is_device=True),
    )
    assert wall(profile) == {
        ("dispatch", "step"): 50,
        ("xla", "gemm"): 700,
        ("copy", "MemcpyD2H"): 150,
        ("idle", ""): 100,
    }
    assert spans(profile, "GPU:0 Stream #13(Compute)") == [(50, 800, "gemm")]
    assert spans(profile, "wall time") == [
        (0, 50, "step"), (50, 750, "gemm"), (750, 900, "MemcpyD2H"), (900, 1000, ""),
    ]  # fmt: skip


def test_two_devices_do_not_share_an_event_that_contains_the_calls_of_both():
    profile = built(
        lane("python", is_own=True),
        lane("tf_XLA/1", (0, 500, "xla", CALLBACK)),
        lane("tf_XLA/2", (5, 520, "xla", CALLBACK)),
        recording=recorded((10, 400, "f", 0), (20, 410, "f", 1), threads=("Dummy-1", "Dummy-2")),
    )
    (part,) = (part for part in profile.parts if part.kind == "host")
    assert (part.wall_ns, part.busy_ns) == (400, 2 * 390)


def test_workers_are_not_in_the_lane_of_the_crossing_that_waits_for_them():
    profile = built(
        lane("python", (0, 1000, "xla", CALLBACK), is_own=True),
        recording=recorded(
            (100, 500, "f", 0), (100, 700, "f", 1), threads=("worker 1", "worker 2"),
            workers=tuple(Worker(n, "", 1, "", 0) for n in range(2)),
        ),
    )  # fmt: skip
    assert spans(profile, "worker 2") == [(100, 700, "f")]
    (part,) = (part for part in profile.parts if part.kind == "host")
    assert (part.wall_ns, part.busy_ns) == (600, 1000)


def test_waiting_for_a_full_queue_is_taken_from_the_crossings():
    recording = recorded(
        (0, 10, "f"), (20, 30, "log", 1), queued=("log",), threads=("", "queue 1"),
        queue=(QueueUse(1, waits=1, waited_ns=300),),
    )  # fmt: skip
    # The event of a queued callback has no host call in it: its program must tell.
    profile = built(lane("python", (0, 400, "xla", CALLBACK), is_own=True), recording=recording)
    assert ("waiting", "log") not in wall(profile)
    profile = built(
        lane("python", (15, 400, "xla", CALLBACK), is_own=True),
        recording=recorded((20, 30, "log"), queue=(QueueUse(0, waits=1, waited_ns=300),)),
    )
    assert wall(profile)["waiting", "log"] == 300
    assert wall(profile)["crossing", "log"] == 385 - 10 - 300


def test_copy_that_goes_on_in_another_thread_is_counted_once():
    profile = built(
        lane(
            "python", (0, 100, "copy", "device_put"), (500, 510, "copy", "device_put"), is_own=True
        ),
        lane("tf_XLA/1", (50, 300, "rest", "device_put")),
    )
    (part,) = (one for one in profile.parts if one.kind == "copy")
    assert (part.times, part.wall_ns, part.busy_ns) == (2, 310, 360)
