"""A failure ends its own run, on all devices, and no later run."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EVERYWHERE = {"pure", "io", "io ordered", "io ordered, no result", "debug", "tap"}
FLAVORS = {1: EVERYWHERE | {"debug ordered"}, 2: EVERYWHERE}
PROGRAMS = {"jit", "sum", "loop", "shard_map", "pmap", "resharded"}
ORDERED = ("io ordered", "debug ordered", "tap")


@pytest.fixture(scope="module")
def found(in_process):
    @functools.cache
    def found(devices):
        done = in_process(HERE / "poison.py", devices=devices)
        assert "Traceback" not in done.stderr and "no luck" not in done.stderr  # nor at exit
        return done.value

    return found


on_devices = pytest.mark.parametrize("devices", [1, 2])


@pytest.mark.long
@on_devices
def test_every_flavor_failed_in_every_program(found, devices):
    cases = {f"{flavor}: {program}" for flavor in FLAVORS[devices] for program in PROGRAMS}
    assert found(devices)["cases"].keys() == cases


@on_devices
def test_each_run_raises_its_own_error_with_the_host_error_as_cause(found, devices):
    for case, reported in found(devices)["cases"].items():
        assert reported["raised"] == ["JaxRuntimeError from ValueError('no luck')"] * 2, case


@on_devices
def test_ordered_calls_after_the_failing_one_are_not_made(found, devices):
    for case, reported in found(devices)["cases"].items():
        if case.startswith(ORDERED):
            assert reported["later"] == 0, case


@on_devices
def test_unrelated_ordered_callbacks_work_afterwards(found, devices):
    for case, reported in found(devices)["cases"].items():
        assert reported["unrelated"] == [1.0, 2.0, 3.0], case


@on_devices
def test_failed_program_works_once_its_host_function_does(found, devices):
    reported = found(devices)
    for case, result in reported["cases"].items():
        assert result["result"] == [x + 1 for x in reported["x"]], case


@pytest.mark.long
@pytest.mark.kept
@pytest.mark.parametrize("program", ["ours", "jax pure", "jax io", "jax pure, jit"])
def test_error_of_a_device_is_reported_while_other_devices_wait_for_it(program):
    """XLA aborts the process after a minute, before JAX can raise the error."""
    flavor = "pure" if program == "ours" else program.removesuffix(", jit")
    with subprocess.Popen(
        [sys.executable, HERE / "waiting.py", program],
        stderr=subprocess.PIPE, text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"},
    ) as process:  # fmt: skip
        assert process.stderr is not None
        reported = []
        for line in process.stderr:
            reported.append(line)
            if line.startswith(f"raised by the {flavor} callback reactor"):
                break
        assert process.poll() is None
        process.kill()
    text = "".join(reported)
    assert "A host function failed on one of several devices" in text
    assert "ValueError: no luck" in text
    assert "on shard 1" in text or program != "ours"
