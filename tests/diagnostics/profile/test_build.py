"""How a block is divided, with made-up events, calls and samples: their figures are known exactly.

Times are in nanoseconds; a block has 1,000 of them.
"""

import dataclasses

import numpy as np
import pytest

from jupyter_jaxcb.diagnostics.profile._build import MAX_PARTS, Collected, build
from jupyter_jaxcb.diagnostics.profile._compilations import Stage
from jupyter_jaxcb.diagnostics.profile._division import Samples
from jupyter_jaxcb.diagnostics.profile._events import Events, Key, LaneEvents
from jupyter_jaxcb.diagnostics.profile._session import Gap
from jupyter_jaxcb.recording import (
    PYTHON_OF_JAX,
    Frame,
    LoweredSite,
    NotKept,
    Program,
    QueueUse,
    Recording,
    Site,
    Unknown,
    Worker,
)
from jupyter_jaxcb.recording._columns import ROW

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


def test_calls_that_take_no_time_are_counted():
    """As calls of compiled code are, whose clock may not advance meanwhile."""
    profile = built(
        lane("python", (0, 1000, "xla", CALLBACK), is_own=True),
        recording=recorded((500, 500, "f"), (500, 501, "f")),
    )
    assert times(profile) == {("host", "f"): 2, ("crossing", "f"): 1}


@pytest.mark.parametrize("outside", [(-20, -10), (-20, 0), (1000, 1100)])
def test_calls_outside_of_the_block_are_not_counted(outside):
    recording = recorded((500, 600, "f"), (*outside, "f"))
    assert times(built(recording=recording))["host", "f"] == 1


def test_calls_of_two_devices_are_in_the_lanes_of_their_crossings():
    """Each call may seem to come from another thread, and runs beside one of the other device."""
    profile = built(
        lane("python", is_own=True),
        lane("tf_XLA/1", (0, 500, "xla", CALLBACK), (510, 1000, "xla", CALLBACK)),
        lane("tf_XLA/2", (20, 520, "xla", CALLBACK), (530, 990, "xla", CALLBACK)),
        recording=recorded(
            (10, 490, "f", 0), (30, 510, "f", 1), (520, 980, "f", 2), (540, 985, "f", 3),
            threads=("Dummy-1", "Dummy-2", "Dummy-1", "Dummy-2"),
        ),
    )  # fmt: skip
    (part,) = (part for part in profile.parts if part.kind == "host")
    assert part.busy_ns == 480 + 480 + 460 + 445
    assert part.wall_ns == 985 - 10 - 10  # from 510 to 520 no function runs


def test_threads_of_the_program_keep_their_names():
    """Their calls tell; a thread without calls has a number."""
    profile = built(
        lane("python", is_own=True),
        lane("python", (0, 400, "xla", CALLBACK), (500, 600, "xla", CALLBACK)),
        lane("python", (10, 20, *RUN)),
        lane("python", (610, 1000, "xla", CALLBACK)),
        recording=recorded(
            (10, 390, "f", 0), (510, 590, "f", 0), (620, 990, "f", 1),
            threads=("trainer-0", "trainer-1"),
        ),
    )  # fmt: skip
    names = {one.name for one in profile.lanes}
    assert names == {"wall time", "trainer-0", "Python thread 2", "trainer-1"}
    assert [name for _, _, name in spans(profile, "trainer-1")] == ["f"] * 3


def test_each_crossing_of_two_devices_has_an_event_that_contains_its_call():
    """The event that began first contains both calls, but the other one only the first call."""
    profile = built(
        lane("python", is_own=True),
        lane("tf_XLA/1", (0, 900, "xla", CALLBACK)),
        lane("tf_XLA/2", (10, 500, "xla", CALLBACK)),
        recording=recorded((20, 400, "f", 0), (30, 800, "f", 1), threads=("Dummy-1", "Dummy-2")),
    )
    assert spans(profile, "XLA thread 2") == [(10, 20, "f"), (20, 400, "f"), (400, 500, "f")]
    assert spans(profile, "XLA thread 1") == [(0, 30, "f"), (30, 800, "f"), (800, 900, "f")]


def test_two_devices_do_not_share_an_event_that_contains_the_calls_of_both():
    profile = built(
        lane("python", is_own=True),
        lane("tf_XLA/1", (0, 500, "xla", CALLBACK)),
        lane("tf_XLA/2", (5, 520, "xla", CALLBACK)),
        recording=recorded((10, 400, "f", 0), (20, 410, "f", 1), threads=("Dummy-1", "Dummy-2")),
    )
    (part,) = (part for part in profile.parts if part.kind == "host")
    assert (part.wall_ns, part.busy_ns) == (400, 2 * 390)


def test_callback_without_a_known_line_has_no_place():
    recording = recorded((100, 200, "debug.print"))
    (fact,) = recording.lowered
    site = dataclasses.replace(fact.site, file="<unknown>", line=0)
    fact = dataclasses.replace(fact, site=site, program=None)
    profile = built(
        lane("python", (50, 300, "xla", "debug_print.1"), is_own=True),
        recording=dataclasses.replace(recording, lowered=(fact,)),
    )
    named = [part for part in profile.parts if part.name == "debug.print"]
    assert [(str(part.kind), part.place, part.wall_ns) for part in named] == [
        ("host", None, 100), ("crossing", None, 150),
    ]  # fmt: skip


def test_queued_call_is_not_in_the_lane_of_a_crossing():
    profile = built(
        lane("python", (0, 1000, "xla", CALLBACK), is_own=True),
        recording=recorded(
            (10, 20, "f"), (100, 900, "log", 1), queued=("log",), threads=("MainThread", "queue 1")
        ),
    )
    assert spans(profile, "queue 1") == [(100, 900, "log")]
    assert wall(profile) == {("host", "f"): 10, ("crossing", "f"): 990}


def test_queued_call_counts_while_the_program_waits_for_it():
    profile = built(
        recording=recorded((100, 900, "log", 1), queued=("log",), threads=("", "queue 1")),
        cpu=(0, 300),
    )
    assert wall(profile) == {("queued", "log"): 700, ("python", ""): 300}


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


def test_devices_that_wait_for_a_full_queue_at_the_same_time_leave_time_to_the_crossings():
    """They wait 600 of the 750 that their crossings take: for 4/5 of the wall time too."""
    profile = built(
        lane("python", is_own=True),
        lane("tf_XLA/1", (15, 400, "xla", CALLBACK)),
        lane("tf_XLA/2", (15, 400, "xla", CALLBACK)),
        recording=recorded(
            (20, 30, "log", 0), (20, 30, "log", 1), threads=("Dummy-1", "Dummy-2"),
            queue=(QueueUse(0, waits=1, waited_ns=320), QueueUse(0, waits=1, waited_ns=280)),
        ),
    )  # fmt: skip
    busy = {str(part.kind): part.busy_ns for part in profile.parts}
    assert (wall(profile)["waiting", "log"], busy["waiting"]) == (300, 600)
    assert (wall(profile)["crossing", "log"], busy["crossing"]) == (75, 150)


def test_crossings_cannot_wait_longer_than_they_take():
    profile = built(
        lane("python", (15, 400, "xla", CALLBACK), is_own=True),
        recording=recorded((20, 30, "log"), queue=(QueueUse(0, waits=1, waited_ns=9999),)),
    )
    assert wall(profile)["waiting", "log"] == 385 - 10
    assert ("crossing", "log") not in wall(profile)


def test_calls_that_were_not_logged_count_as_host_functions():
    """Only the sum of their time is known, so it is taken from the crossings of their site."""
    profile = built(
        lane("python", (0, 300, "xla", CALLBACK), (400, 900, "xla", CALLBACK), is_own=True),
        recording=recorded(
            (100, 200, "f"), overflow=7,
            not_kept=(NotKept(0, 0, 5, 5, 300), NotKept(0, 1, 2, 1, 50)),
        ),
    )  # fmt: skip
    assert wall(profile) == {("host", "f"): 100 + 350, ("crossing", "f"): 350, ("idle", ""): 200}
    assert times(profile) == {("host", "f"): 1 + 7, ("crossing", "f"): 2, ("idle", ""): 0}
    busy = {str(part.kind): part.busy_ns for part in profile.parts}
    assert (busy["host"], busy["crossing"]) == (450, 350)


def test_crossings_of_two_devices_give_the_same_share_of_their_wall_time_to_calls_not_logged():
    """They take 350 of the wall time and 700 in total, of which 420 were in the function."""
    profile = built(
        lane("python", is_own=True),
        lane("tf_XLA/1", (0, 400, "xla", CALLBACK)),
        lane("tf_XLA/2", (0, 400, "xla", CALLBACK)),
        recording=recorded(
            (0, 50, "f", 0), (0, 50, "f", 1), threads=("Dummy-1", "Dummy-2"),
            overflow=4, not_kept=(NotKept(0, 0, 4, 4, 420),),
        ),
    )  # fmt: skip
    assert wall(profile) == {("host", "f"): 50 + 210, ("crossing", "f"): 140, ("idle", ""): 600}
    busy = {str(part.kind): part.busy_ns for part in profile.parts}
    assert (busy["host"], busy["crossing"]) == (100 + 420, 280)


def test_queued_calls_that_were_not_logged_are_busy_but_in_no_crossing():
    profile = built(
        lane("python", (0, 100, "xla", CALLBACK), is_own=True),
        recording=recorded(
            (10, 20, "f"), (200, 300, "log", 1), queued=("log",), threads=("", "queue 1"),
            overflow=3, not_kept=(NotKept(1, 0, 3, 3, 250),),
        ),
    )  # fmt: skip
    assert wall(profile)["crossing", "f"] == 90
    assert wall(profile)["queued", "log"] == 100
    (part,) = (one for one in profile.parts if one.kind == "queued")
    assert (part.times, part.busy_ns) == (4, 350)


def test_crossings_of_two_callbacks_without_a_logged_call_are_of_neither():
    """Their programs are gone, and the log had no room for calls of both."""
    profile = built(
        lane("python", (0, 100, "xla", CALLBACK), (200, 300, "xla", CALLBACK), is_own=True),
        recording=recorded(
            (10, 20, "f"), (700, 710, "g", 1), threads=("MainThread", "other"), overflow=2,
            not_kept=(NotKept(0, 0, 1, 1, 60), NotKept(1, 0, 1, 1, 60)),
        ),
    )  # fmt: skip
    assert wall(profile)["crossing", "f"] == 90 - 60
    assert wall(profile)["crossing", "jaxcb_pure_callback"] == 100


def test_cpu_time_of_jax_is_that_of_the_intervals_in_which_nothing_else_runs():
    """In the first half JAX computes for half of the time, so it does in the second half too."""
    profile = built(
        lane("python", (0, 700, *RUN), is_own=True), times=(0, 500, 1000), cpu=(0, 250, 450)
    )
    assert wall(profile) == {("dispatch", "step"): 700, ("python", ""): 100, ("idle", ""): 200}


def test_after_the_profiler_stopped_in_a_program_the_rest_of_it_is_unknown():
    """The dispatch had not ended, so it has no event: between its operations is not Python."""
    profile = built(
        lane("python", (0, 100, *RUN), (300, 350, "xla", "exp.1"), (400, 450, "xla", "exp.2"),
             is_own=True),
        cpu=(0, 1000), gaps=[Gap(500, 0, Unknown.EVENTS)],
    )  # fmt: skip
    assert wall(profile) == {
        ("dispatch", "step"): 100,
        ("xla", "exp"): 100,
        ("python", ""): 200,  # until the first operation
        ("unknown", "too many events"): 600,
    }


def test_events_without_a_mark_are_of_the_thread_that_starts_programs():
    """The profiler was stopped and started again, and the thread of the block made no mark."""
    profile = built(
        lane("python", (0, 100, *RUN), is_own=True),
        more=[
            [
                lane("python", (450, 455, "xla", "exp.1")),
                lane("python", (400, 500, *RUN), (520, 620, *RUN)),
            ],
            [lane("python", (800, 900, *RUN), is_own=True)],
        ],
        cpu=(0, 400),  # of these four programs, so none is Python's
    )
    assert wall(profile) == {("dispatch", "step"): 395, ("xla", "exp"): 5, ("idle", ""): 600}
    assert [one.name for one in profile.lanes] == ["wall time", "main thread", "Python thread 1"]


def test_what_the_recording_knows_counts_while_the_profiler_is_off():
    profile = built(
        gaps=[Gap(200, 900, Unknown.READING)], recording=recorded((300, 400, "f")), cpu=(0, 1000),
        stages=[Stage("compile", "step", 400, 500, 1)],
    )  # fmt: skip
    assert wall(profile) == {
        ("host", "f"): 100,
        ("compilation", "step"): 100,
        ("python", ""): 300,
        ("unknown", "events were read"): 500,
    }


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


def test_copy_that_goes_on_in_another_thread_is_counted_once():
    profile = built(
        lane(
            "python", (0, 100, "copy", "device_put"), (500, 510, "copy", "device_put"), is_own=True
        ),
        lane("tf_XLA/1", (50, 300, "rest", "device_put")),
    )
    (part,) = (one for one in profile.parts if one.kind == "copy")
    assert (part.times, part.wall_ns, part.busy_ns) == (2, 310, 360)


def test_parts_after_the_longest_of_a_kind_are_added_up():
    many = [(n * 50, n * 50 + n + 1, "xla", f"op{chr(97 + n)}.1") for n in range(MAX_PARTS + 5)]
    profile = built(lane("python", *many, is_own=True))
    parts = [part for part in profile.parts if part.kind == "xla"]
    assert [part.wall_ns for part in parts] == [*range(15, 5, -1), 5 + 4 + 3 + 2 + 1]
    assert (parts[-1].name, parts[-1].times) == ("other", 5)


def test_threads_of_one_kind_are_numbered_and_the_busiest_kept():
    lanes = [lane(f"tf_XLAEigen/{n}", (0, 10 * n, "xla", "exp.1")) for n in range(1, 18)]
    profile = built(lane("python", is_own=True), lane("python", (0, 5, *RUN)), *lanes)
    names = [one.name for one in profile.lanes]
    assert names == ["wall time", *(f"XLA thread {n}" for n in range(3, 18))]
