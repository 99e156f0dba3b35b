"""Profiles of real programs: what holds on a machine that may stop at any moment.

How the time is divided is decided on made-up events, in `test_build`. Here each kind of part occurs
once for real: it has its name, its line and its count, and host functions have exactly the time of
their calls.
"""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.profile import _sampler

MATRIX = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64) / 64


def profiled(run):
    """Return the recording of `run`, and its profile, whose parts add up to the wall time."""
    with jaxcb.profile() as p:
        run()
    profile = p.profile
    assert sum(part.wall_ns for part in profile.parts) == profile.wall_ns
    assert all(part.wall_ns >= 0 for part in profile.parts)
    return p.recording, profile


def part_of(profile, kind, name):
    (part,) = (one for one in profile.parts if (one.kind, one.name) == (kind, name))
    return part


def host_ns(recording):
    """Return how long the calls took, summed over threads."""
    return int((recording.calls["end_ns"] - recording.calls["start_ns"]).sum())


def same(x):
    return x


@pytest.mark.parametrize(
    ("program", "steps", "calls", "crossings"),
    [
        (lambda f: lambda x: f(x[0]), 20, 20, 20),
        (jax.vmap, 1, 100, 1),
        (lambda f: lambda x: jax.lax.fori_loop(0, 5000, lambda i, y: f(y), x[0]), 1, 5000, 5000),
    ],
    ids=["steps", "batch elements", "loop"],
)
def test_host_functions_have_the_time_and_the_number_of_their_calls(
    program, steps, calls, crossings
):
    step = jax.jit(program(jaxcb.io(same, result=lambda x: x)))
    step(jnp.arange(100.0)).block_until_ready()
    recording, profile = profiled(
        lambda: [step(jnp.arange(100.0)).block_until_ready() for _ in range(steps)]
    )
    part = part_of(profile, "host", "same")
    assert (part.times, part_of(profile, "crossing", "same").times) == (calls, crossings)
    assert part.wall_ns == part.busy_ns == host_ns(recording)


def test_callbacks_of_jax_in_a_program_compiled_before_have_their_own_lines(capfd):
    """Each has the line of its operation: both prints have the same host function of JAX."""

    @jax.jit
    def step(x):
        jax.debug.print("one {}", x)
        jax.debug.print("two {}", x * 2)
        jax.debug.callback(int, x)
        return x

    first = step.__wrapped__.__code__.co_firstlineno + 2
    step(1.0).block_until_ready()
    jax.effects_barrier()
    recording, profile = profiled(lambda: [step(1.0).block_until_ready() for _ in range(3)])
    assert profile.of_kind("host") == host_ns(recording)
    for kind in ("host", "crossing"):
        parts = [part for part in profile.parts if part.kind == kind]
        found = sorted((part.place.line, part.name, part.times) for part in parts)
        assert [line for line, _, _ in found] == [first, first + 1, first + 2]
        assert [name for _, name, _ in found] == ["debug.print", "debug.print", "int"]
        assert {part.place.file for part in parts} == {__file__}
        assert {times for _, _, times in found} == {3}


def test_waiting_between_steps_is_idle_at_its_line(monkeypatch):
    samples, seen, place_of = [], threading.Event(), _sampler.place_of

    def wait_for_data():
        assert seen.wait(60)

    def sampled(frame):
        place, in_jax = place_of(frame)
        samples.append(place and place.function)
        if samples.count("wait_for_data") == 2:
            seen.set()
        return place, in_jax

    monkeypatch.setattr(_sampler, "place_of", sampled)
    _, profile = profiled(wait_for_data)
    part = part_of(profile, "idle", "wait_for_data")
    assert (part.place.file, part.wall_ns > 0) == (__file__, True)


def test_operations_have_their_name_line_and_count_also_in_programs_of_one_name():
    first = jax.jit(lambda x: x @ x)
    second = jax.jit(lambda x: jnp.sort(x @ x))  # both are called jit__lambda
    line = first.__wrapped__.__code__.co_firstlineno
    first(MATRIX).block_until_ready(), second(MATRIX).block_until_ready()
    _, profile = profiled(lambda: [f(MATRIX).block_until_ready() for f in (first, second, second)])
    found = {
        (part.name, part.place.line, part.times) for part in profile.parts if part.kind == "xla"
    }
    assert {("dot_general", line, 1), ("dot_general", line + 1, 2), ("sort", line + 1, 2)} <= found
    assert part_of(profile, "dispatch", "<lambda>").times == 3


def test_compilation_of_a_large_function():
    def chain(x):
        for n in range(300):
            x = jnp.sin(x) * n
        return x

    passed = []

    def run():
        start = time.perf_counter_ns()
        jax.jit(chain).lower(MATRIX[:3]).compile()
        passed.append(time.perf_counter_ns() - start)

    _, profile = profiled(run)
    assert 0 < profile.of_kind("compilation") <= passed[0]
    assert part_of(profile, "compilation", "chain").times == 1
    assert [one.program.name for one in profile.compilations] == ["jit_chain"]


def test_queued_host_functions_and_waiting_for_their_queue():
    """The queue has room for one array, and each call lasts until the program has made another."""
    log = jaxcb.debug(lambda x: time.sleep(0.01), queued=True)
    step = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda i, x: (log(x), x + 1)[1], x))
    x = jnp.zeros(1000)
    step(x).block_until_ready()
    jax.effects_barrier()
    before = jaxcb.set_queue_limit(5000)  # one array has 4,000 bytes
    try:
        recording, profile = profiled(lambda: (step(x).block_until_ready(), jax.effects_barrier()))
    finally:
        jaxcb.set_queue_limit(before)
    (queued,) = (part for part in profile.parts if part.kind == "queued")
    (waiting,) = (part for part in profile.parts if part.kind == "waiting")
    assert (queued.times, queued.busy_ns) == (10, host_ns(recording))
    assert waiting.busy_ns == sum(use.waited_ns for use in recording.queue)
    assert profile.of_kind("host") == 0
    of_queue = [
        lane.name
        for lane in profile.lanes[1:]
        if any(profile.parts[part].kind == "queued" for part in lane.spans[2::3])
    ]
    assert len(of_queue) == 1 and "main thread" not in of_queue


def test_workers_of_an_executor_count_as_one_host_function():
    """Two calls meet: the wall time is theirs once, the busy time is both's."""
    meeting = threading.Barrier(2)

    def simulate(x):
        meeting.wait(60)
        return x

    simulate = jaxcb.io(simulate, result=lambda x: x, executor="threads:2", chunksize=1)
    step = jax.jit(jax.vmap(simulate))
    step(jnp.arange(2.0)).block_until_ready()
    recording, profile = profiled(lambda: step(jnp.arange(2.0)).block_until_ready())
    part = part_of(profile, "host", "simulate")
    assert (part.times, part.busy_ns) == (2, host_ns(recording))
    assert part.wall_ns < part.busy_ns


ON_TWO_DEVICES = """
    import json, threading, time, jax, jax.numpy as jnp, numpy as np
    import jupyter_jaxcb as jaxcb
    from jax.sharding import Mesh, PartitionSpec as P

    meeting = threading.Barrier(2)
    simulate = jaxcb.io(lambda x: (meeting.wait(60), time.sleep(0.01), x)[2], result=lambda x: x)

    @jax.jit
    def step(x):
        body = lambda x: jax.lax.fori_loop(0, 10, lambda i, y: simulate(y), x)
        mesh = Mesh(np.array(jax.devices()), "d")
        return jax.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)(x)

    step(jnp.arange(2.0)).block_until_ready()
    with jaxcb.profile() as p:
        step(jnp.arange(2.0)).block_until_ready()
    (host,) = (part for part in p.profile.parts if part.kind == "host")
    number = p.profile.parts.index(host)
    lanes = [lane.name for lane in p.profile.lanes[1:] if number in lane.spans[2::3]]
    calls = p.recording.calls
    busy = int((calls["end_ns"] - calls["start_ns"]).sum())
    print(json.dumps([host.times, host.busy_ns == busy, host.wall_ns < busy, len(lanes)]))
"""


@pytest.mark.long
def test_host_functions_on_two_devices_are_busy_in_two_lanes(in_process):
    """Each call of one device meets one of the other."""
    assert in_process(ON_TWO_DEVICES, devices=2).value == [20, True, True, 2]


@pytest.mark.filterwarnings("ignore:the jax pure callback spin")
@pytest.mark.parametrize("compiled", ["before the block", "in the block"])
@pytest.mark.parametrize("callback", ["ours", "of JAX"])
def test_calls_that_the_log_had_no_room_for_count_as_host_functions(callback, compiled):
    def spin(x):
        return 2 * x

    scalar = jax.ShapeDtypeStruct((), np.float32)
    call = jaxcb.io(spin, result=lambda x: x) if callback == "ours" else jax.pure_callback
    body = call if callback == "ours" else lambda x: call(spin, scalar, x)
    run = jax.jit(lambda x: jax.lax.fori_loop(0, 30, lambda i, x: body(x), x))
    if compiled == "before the block":
        run(1.0).block_until_ready()
    with jaxcb.profile(capacity=10) as p:
        run(1.0).block_until_ready()
    host, crossing = (part_of(p.profile, kind, "spin") for kind in ("host", "crossing"))
    (lost,) = p.recording.not_kept
    assert (host.times, crossing.times, lost.calls) == (30, 30, 20)
    assert host.busy_ns == host_ns(p.recording) + lost.host_ns
    assert "20 host calls did not fit into the log" in str(p)
