"""A `profile` block around JAX's first use in a process leaves the choice of devices to it."""

import pytest

BEFORE = """
    import json, sys, jax, jupyter_jaxcb as jaxcb

    def run(start, wait=True):
        with jaxcb.profile() as p:
            start()
            while wait and not p._block._sampler.tracing.gaps:
                pass
            step = jax.jit(lambda x: jaxcb.pure(lambda x: 2 * x, result="x")(x) + 1)
            step(1.0).block_until_ready()
        parts = p.profile.parts
        assert sum(part.wall_ns for part in parts) == p.profile.wall_ns
        names = [part.name for part in parts if part.kind == "unknown"]
        crossings = sum(part.times for part in parts if part.kind == "crossing")
        print(json.dumps([len(jax.devices()), crossings, names, p.profile.lanes[1].name]))
"""
CHOOSES = """
    run(lambda: (jax.config.update("jax_num_cpu_devices", 3), jax.devices()), wait=False)
"""
STARTS_LATE = "    run(jax.devices)"
OWN_PROFILER = "    run(lambda: jax.profiler.start_trace(sys.argv[1])); jax.profiler.stop_trace()"


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "devices", "crossings", "why"),
    [
        (CHOOSES, 3, 1, None),
        (STARTS_LATE, 1, 1, "not started yet"),
        (OWN_PROFILER, 1, 0, "another profiler ran"),
    ],
)
def test_profiler_starts_when_the_program_has_chosen_devices_unless_it_profiles_itself(
    program, devices, crossings, why, in_process, tmp_path
):
    ran = in_process(BEFORE + program, tmp_path, JAX_NUM_CPU_DEVICES="-1")
    found, made, names, lane = ran.value
    assert (found, made, lane) == (devices, crossings, "main thread")
    assert why is None or names == [why]
    assert bool(list(tmp_path.rglob("*.xplane.pb"))) == (program == OWN_PROFILER)
