import pytest

"""A `profile` block around JAX's first use in a process leaves the choice of devices to it."""

BEFORE = """
    import json, jax, jupyter_jaxcb as jaxcb
    from jax._src import xla_bridge

    def step(x):
        return jaxcb.pure(lambda x: 2 * x, result="x")(x) + 1

    def told(p):
        kinds = {part.kind: part.times for part in p.profile.parts}
        whole = sum(part.wall_ns for part in p.profile.parts) == p.profile.wall_ns
        return [whole, kinds.get("crossing"), [lane.name for lane in p.profile.lanes][1:2]]
"""

CHOOSES = f"""{BEFORE}
    with jaxcb.profile() as p:
        jax.config.update("jax_num_cpu_devices", 3)
        count = len(jax.devices())
        jax.jit(step)(1.0).block_until_ready()
    print(json.dumps([count, *told(p)]))
"""


@pytest.mark.long
def test_block_around_the_first_use_of_jax_leaves_the_number_of_devices_open(in_process):
    """The program of the block is profiled; its thread has its lane."""
    assert in_process(CHOOSES, JAX_NUM_CPU_DEVICES="-1").value == [3, True, 1, ["main thread"]]


STARTS_LATE = f"""{BEFORE}
    with jaxcb.profile() as p:
        before = p._block._sampler.tracing
        assert before.gaps == []
        jax.devices()
        while not before.gaps:
            pass
        for n in range(3):
            jax.jit(step)(1.0).block_until_ready()
    (gap,) = before.gaps
    unknown = [part.name for part in p.profile.parts if part.kind == "unknown"]
    print(json.dumps([*told(p), p.profile.event_ns > 0, unknown, gap.end_ns > gap.start_ns]))
"""


@pytest.mark.long
def test_time_from_the_backends_to_the_start_of_the_profiler_is_not_profiled(in_process):
    assert in_process(STARTS_LATE).value == [
        True, 3, ["main thread"], True, ["not started yet"], True,
    ]  # fmt: skip


OWN_PROFILER = f"""{BEFORE}
    import sys
    with jaxcb.profile() as p:
        jax.profiler.start_trace(sys.argv[1])
        while not p._block._sampler.tracing.gaps:
            pass
        jax.jit(step)(1.0).block_until_ready()
        jax.profiler.stop_trace()
    unknown = [part.name for part in p.profile.parts if part.kind == "unknown"]
    print(json.dumps([len(p.recording), told(p)[0], unknown]))
"""


@pytest.mark.long
def test_profiler_that_the_program_starts_before_ours_is_left_to_it(in_process, tmp_path):
    assert in_process(OWN_PROFILER, tmp_path).value == [1, True, ["another profiler ran"]]
    assert list(tmp_path.rglob("*.xplane.pb"))
