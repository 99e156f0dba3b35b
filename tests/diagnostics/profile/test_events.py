"""What is read from events as JAX's profiler stores them: of a CPU, a GPU and a TPU.

Names and layout are those of real profiles. That of the GPU is known from profiles of others.
"""

import jax
import pytest

from jupyter_jaxcb.diagnostics.profile._events import Key, read_events


class Space:
    """Builds the data of a profile: lines of events, whose times are in nanoseconds."""

    def __init__(self):
        self._planes = {}

    def line(self, plane, line, *events):
        """Add a line; an event is name, start, end and, for an operation, its statistics."""
        self._planes.setdefault(plane, []).append((line, events))

    def read(self):
        text = "\n".join(self._plane(name, lines) for name, lines in self._planes.items())
        serialized = jax.profiler.ProfileData.text_proto_to_serialized_xspace(text)
        return read_events(jax.profiler.ProfileData.from_serialized_xspace(serialized))

    @staticmethod
    def _plane(name, lines):
        names, stats, text = {}, {}, ""
        for line, events in lines:
            text += f'lines {{ name: "{line}"\n'
            for title, start, end, *own in events:
                number = names.setdefault(title, len(names) + 1)
                text += f"events {{ metadata_id: {number} offset_ps: {start * 1000} "
                text += f"duration_ps: {(end - start) * 1000} "
                for stat, value in dict(*own).items():
                    kind = "int64_value: " if isinstance(value, int) else "str_value: "
                    quoted = value if isinstance(value, int) else f'"{value}"'
                    number = stats.setdefault(stat, len(stats) + 1)
                    text += f"stats {{ metadata_id: {number} {kind}{quoted} }} "
                text += "}\n"
            text += "}\n"
        for kind, known in (("event", names), ("stat", stats)):
            for title, number in known.items():
                value = f'{{ id: {number} name: "{title}" }}'
                text += f"{kind}_metadata {{ key: {number} value {value} }}\n"
        return f'planes {{ name: "{name}"\n{text} }}'


def operation(name, start, end, module="jit_step", program=7):
    stats = {"hlo_op": name, "hlo_module": module, "program_id": program, "run_id": 1}
    return name, start, end, stats


def rows(lane, events):
    """The events of a lane: start, end and key."""
    return [
        (start, end, events.keys[key])
        for start, end, key in zip(lane.starts, lane.ends, lane.keys, strict=True)
    ]


def test_threads_have_operations_dispatches_copies_and_marks():
    space = Space()
    space.line(
        "/host:CPU", "python",
        ("jaxcb clock 1000 own", 5, 6),
        ("PjitFunction(step)", 10, 90),
        ("DevicePut", 20, 30),
        operation("dot_general.3", 40, 80),
        ("$threading.py:1 wait", 80, 200),
    )  # fmt: skip
    space.line("/host:CPU", "tf_XLAEigen/12", operation("exp.1", 50, 60))
    space.line("/host:metadata", "other", ("anything", 0, 10))
    space.line("Task Environment", "other", ("anything", 0, 10))
    events = space.read()
    own, other = events.lanes
    assert rows(own, events) == [
        (10, 90, Key("dispatch", "step")),
        (20, 30, Key("copy", "device_put")),
        (40, 80, Key("xla", "dot_general.3", "jit_step", 7)),
    ]
    assert own.marks == [(1000, 5)] and own.is_own and not own.is_device
    assert rows(other, events) == [(50, 60, Key("xla", "exp.1", "jit_step", 7))]
    assert (other.name, other.is_own) == ("tf_XLAEigen/12", False)
    assert events.total == 6
    assert events.last_ns == 1000  # both clocks are one after the times were changed


def test_streams_of_a_gpu_are_lanes_and_its_other_lines_repeat_them():
    space = Space()
    space.line(
        "/device:GPU:1", "Stream #13(Compute)",
        ("void gemm_kernel<float>(int)", 10, 40,
         {"program_id": 7, "hlo_module": "jit_step", "hlo_op": "cublas-gemm.1"}),
        ("unnamed_kernel", 40, 50, {"correlation_id": "1"}),
    )  # fmt: skip
    space.line(
        "/device:GPU:1", "Stream #14(MemcpyH2D,MemcpyD2H)",
        ("MemcpyH2D", 50, 60, {"memcpy_details": "size:4 dest:1 async:1"}),
        ("MemcpyD2H", 60, 65),
    )  # fmt: skip
    space.line("/device:GPU:1", "XLA Modules", ("jit_step", 10, 65))
    space.line("/device:GPU:1", "XLA Ops", operation("cublas-gemm.1", 10, 40))
    space.line("/device:GPU:1", "Framework Name Scope", ("jit(step)", 10, 40))
    events = space.read()
    compute, copies = events.lanes
    assert [lane.name for lane in events.lanes] == [
        "GPU:1 Stream #13(Compute)",
        "GPU:1 Stream #14(MemcpyH2D,MemcpyD2H)",
    ]
    assert all(lane.is_device and not lane.is_own for lane in events.lanes)
    assert rows(compute, events) == [
        (10, 40, Key("xla", "cublas-gemm.1", "jit_step", 7)),
        (40, 50, Key("xla", "unnamed_kernel")),
    ]
    assert [key.kind for _, _, key in rows(copies, events)] == ["copy", "copy"]
    assert events.total == 4


def test_operations_of_one_name_are_told_apart_by_program_and_those_of_one_kernel_by_name():
    space = Space()
    space.line(
        "/host:CPU", "python", operation("add.1", 0, 1), operation("add.1", 2, 3, "jit_other", 8),
        operation("add.1", 4, 5),
    )  # fmt: skip
    space.line(
        "/device:GPU:0", "Stream #13(Compute)",
        ("gemm", 10, 11, {"program_id": 7, "hlo_module": "jit_step", "hlo_op": "dot.1"}),
        ("gemm", 12, 13, {"program_id": 7, "hlo_module": "jit_step", "hlo_op": "dot.2"}),
    )  # fmt: skip
    events = space.read()
    step, other = Key("xla", "add.1", "jit_step", 7), Key("xla", "add.1", "jit_other", 8)
    assert [key for _, _, key in rows(events.lanes[0], events)] == [step, other, step]
    assert [key.name for _, _, key in rows(events.lanes[1], events)] == ["dot.1", "dot.2"]


def test_operations_of_a_tpu_are_a_lane():
    space = Space()
    space.line("/device:TPU:0", "Steps", ("1", 0, 100))
    space.line("/device:TPU:0", "XLA Modules", ("jit_step(7)", 10, 90))
    space.line("/device:TPU:0", "XLA Ops", ("fusion.2", 10, 30), ("dot.1", 30, 90))
    events = space.read()
    (lane,) = events.lanes
    assert lane.name == "TPU:0 XLA Ops" and lane.is_device
    assert [(start, end, key.name) for start, end, key in rows(lane, events)] == [
        (10, 30, "fusion.2"),
        (30, 90, "dot.1"),
    ]


def test_operation_that_went_on_in_other_threads_ends_where_xla_notes_it():
    space = Space()
    space.line("/host:CPU", "tf_XLAEigen/1", operation("dot.1", 10, 12), operation("dot.1", 60, 61))
    space.line("/host:CPU", "tf_XLAEigen/2", ("end: dot.1", 50, 50), ("end: dot.1", 95, 95))
    events = space.read()
    assert [row[:2] for row in rows(events.lanes[0], events)] == [(10, 50), (60, 95)]


@pytest.mark.parametrize("name", ["dot.1", "jaxcb_pure_callback.1"])
def test_end_is_not_moved_if_it_may_belong_to_another_run(name):
    """The profile began in an operation; and the end of a callback is known better."""
    ends = [("end: dot.1", 5, 5), ("end: dot.1", 50, 50)]
    if name != "dot.1":
        ends = [(f"end: {name}", 50, 50)]
    space = Space()
    space.line("/host:CPU", "tf_XLAEigen/1", operation(name, 10, 12))
    space.line("/host:CPU", "tf_XLAEigen/2", *ends)
    events = space.read()
    assert [row[:2] for row in rows(events.lanes[0], events)] == [(10, 12)]
