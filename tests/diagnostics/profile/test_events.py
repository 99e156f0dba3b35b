"""What is read from events as JAX's profiler stores them: of a CPU, a GPU and a TPU.

Names and layout are those of real profiles. That of the GPU is known from profiles of others.
"""

import jax
import pytest

from jupyter_jaxcb.diagnostics.profile._events import Key, read_events

SECOND = 10**9
CPU, GPU = "/host:CPU", "/device:GPU:1"
OPERATION = {"program_id": 7, "hlo_module": "jit_step"}


def operation(name, start, end, module="jit_step", program=7):
    stats = {"hlo_op": name, "hlo_module": module, "program_id": program, "run_id": 1}
    return name, start, end, stats


def read(*lines):
    """Read a profile of lines: the names of plane and line, then events with start and end."""
    planes = {}
    for plane, name, *events in lines:
        names, stats, text = planes.setdefault(plane, ({}, {}, []))
        text.append(f'lines {{ name: "{name}"')
        for title, start, end, *more in events:
            number = names.setdefault(title, len(names) + 1)
            text.append(f"events {{ metadata_id: {number} offset_ps: {start * 1000}")
            text.append(f"duration_ps: {(end - start) * 1000}")
            for stat, value in dict(*more).items():
                kind = f"int64_value: {value}" if value == 7 else f'str_value: "{value}"'
                text.append(
                    f"stats {{ metadata_id: {stats.setdefault(stat, len(stats) + 1)} {kind} }}"
                )
            text.append("}")
        text.append("}")
    space = []
    for plane, (names, stats, text) in planes.items():
        for kind, known in (("event", names), ("stat", stats)):
            text += [
                f'{kind}_metadata {{ key: {number} value {{ id: {number} name: "{title}" }} }}'
                for title, number in known.items()
            ]
        space += [f'planes {{ name: "{plane}"', *text, "}"]
    profile = jax.profiler.ProfileData
    serialized = profile.text_proto_to_serialized_xspace("\n".join(space))
    return read_events(profile.from_serialized_xspace(serialized))


def rows(events, lane=0):
    """The events of a lane: start, end and key."""
    own = events.table[events.table["lane"] == lane]
    return [(row["start"], row["end"], events.keys[row["part"]]) for row in own]


def test_threads_have_operations_dispatches_copies_and_marks():
    events = read(
        (CPU, "tf_XLAEigen/12", operation("exp.1", 50, 60)),
        (CPU, "python", ("jaxcb clock 1005 own", 5, 6), ("PjitFunction(step)", 10, 90),
         ("DevicePut", 20, 30), operation("dot_general.3", 40, 80),
         ("PjitFunction(inner)", 45, 60), ("$threading.py:1 wait", 80, 200)),
        ("/host:metadata", "other", ("anything", 0, 10)),
    )  # fmt: skip
    assert events.lanes == ["tf_XLAEigen/12", "python"] and events.own == 1
    assert rows(events) == [(1050, 1060, Key("xla", "exp.1", "jit_step", 7))]
    assert rows(events, 1) == [
        (1010, 1090, Key("dispatch", "step")),
        (1020, 1030, Key("copy", "device_put")),
        (1040, 1080, Key("xla", "dot_general.3", "jit_step", 7)),
    ]
    assert (events.total, events.last_ns) == (7, 1090)


def test_streams_of_a_gpu_are_lanes_and_its_other_lines_repeat_them():
    events = read(
        (GPU, "Stream #13(Compute)", ("gemm", 10, 40, {**OPERATION, "hlo_op": "dot.1"}),
         ("gemm", 40, 50, {**OPERATION, "hlo_op": "dot.2"}), ("unnamed", 50, 60, {"id": "1"})),
        (GPU, "Stream #14(MemcpyH2D,MemcpyD2H)", ("MemcpyH2D", 50, 60), ("MemcpyD2H", 60, 65)),
        (GPU, "XLA Modules", ("jit_step", 10, 65)),
        (GPU, "XLA Ops", operation("dot.1", 10, 40)),
    )  # fmt: skip
    assert events.lanes == ["GPU:1 Stream #13(Compute)", "GPU:1 Stream #14(MemcpyH2D,MemcpyD2H)"]
    assert rows(events) == [
        (10, 40, Key("xla", "dot.1", "jit_step", 7)),
        (40, 50, Key("xla", "dot.2", "jit_step", 7)),  # one kernel is part of both
        (50, 60, Key("xla", "unnamed")),
    ]
    assert [key.kind for _, _, key in rows(events, 1)] == ["copy", "copy"]
    assert events.total == 5


def test_operations_of_a_tpu_are_a_lane():
    events = read(
        ("/device:TPU:0", "Steps", ("1", 0, 100)),
        ("/device:TPU:0", "XLA Modules", ("jit_step(7)", 10, 90)),
        ("/device:TPU:0", "XLA Ops", ("fusion.2", 10, 30), ("dot.1", 30, 90)),
    )
    assert events.lanes == ["TPU:0 XLA Ops"]
    assert rows(events) == [(10, 30, Key("xla", "fusion.2")), (30, 90, Key("xla", "dot.1"))]


@pytest.mark.parametrize(
    ("name", "ends", "expected"),
    [
        ("dot.1", [50, 95], [(10, 50), (60, 95)]),
        ("dot.1", [5, 50, 95], [(10, 12), (60, 61)]),  # the profile began in an operation
        ("jaxcb_pure_callback.1", [50, 95], [(10, 12), (60, 61)]),  # its end is known better
    ],
)
def test_operation_that_went_on_in_other_threads_ends_where_xla_notes_it(name, ends, expected):
    events = read(
        (CPU, "tf_1", operation(name, 10, 12), operation(name, 60, 61)),
        (CPU, "tf_2", *((f"end: {name}", end, end) for end in ends)),
    )
    assert [row[:2] for row in rows(events)] == expected


def test_clocks_of_different_rates_agree_at_all_times():
    """The recorder's clock gains 2 µs in each second, of which 10 are between the marks."""
    ten = 10 * SECOND
    events = read(
        (CPU, "python", ("jaxcb clock 500", 0, 1), ("jaxcb clock 100", 3, 4),  # one that was late
         *(operation("dot.1", time, time + 1) for time in (0, 5 * SECOND, ten)),
         (f"jaxcb clock {ten + 20_500}", ten, ten + 1)),
    )  # fmt: skip
    assert events.table["start"].tolist() == [500, 5 * SECOND + 10_500, ten + 20_500]
