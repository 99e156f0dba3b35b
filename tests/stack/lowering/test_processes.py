"""Which of the two processes of a jax.distributed run, with two devices each, makes a call."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

FLAVORS = ("pure", "io", "debug")
BOTH = pytest.mark.parametrize("process", [0, 1])
SCRIPT = Path(__file__).with_name("processes.py")
pytestmark = pytest.mark.slow  # the processes choose their own devices
LIMIT_SECONDS = 100


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Run the script in two processes; return the JSON that each prints last."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    outputs = [tmp_path_factory.mktemp("processes") / "output" for _ in range(2)]
    with contextlib.ExitStack() as files:
        processes = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(number), str(port), "2"],
                stdout=files.enter_context(output.open("w")),
                stderr=subprocess.STDOUT,
                env=environment,
            )
            for number, output in enumerate(outputs)
        ]
        try:
            for process in processes:
                process.wait(LIMIT_SECONDS)
        finally:
            for process in processes:
                process.kill()  # JAX treats SIGTERM as a preemption notice and continues
                process.wait()
    texts = [output.read_text() for output in outputs]
    for number, process in enumerate(processes):
        assert process.returncode == 0, f"process {number}:\n{texts[number]}"
    return [json.loads(text.splitlines()[-1]) for text in texts]


@pytest.mark.parametrize("flavor", FLAVORS)
@BOTH
def test_each_process_calls_and_records_the_shards_of_its_devices(found, flavor, process):
    """Each device has 2 of 8 numbers."""
    row = found[process]["programs"][f"{flavor}: shard_map"]
    first = 4 * process
    shards = [[first, first + 1], [first + 2, first + 3]]
    assert row["seen"] == shards
    assert row["parts"] == [[2 * x for x in shard] for shard in shards]
    assert (row["status"], row["calls"], row["expected"]) == ("kept", 2, 2)


@pytest.mark.parametrize("flavor", FLAVORS)
@BOTH
def test_under_jit_one_process_calls_and_all_get_the_result(found, flavor, process):
    """JAX's own pure_callback returns zeros on all devices but the first."""
    row = found[process]["programs"][f"{flavor}: jit"]
    whole = list(range(8))
    assert row["seen"] == ([whole] if process == 0 else [])
    doubled = [2 * x for x in whole]
    for part in row["parts"]:
        assert part == doubled if len(part) == 8 else set(part) < set(doubled)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_process_reports_that_another_one_makes_its_calls(found, flavor):
    rows = [process["programs"][f"{flavor}: jit"] for process in found]
    assert [row["status"] for row in rows] == ["kept", "not_run"]
    assert [row["calls"] for row in rows] == [row["expected"] for row in rows] == [1, 0]
    assert rows[1]["reason"] == "another process makes its calls on behalf of all"
    guide = Path(__file__).parents[3] / "docs" / "guide" / "several-processes.md"
    assert f"`not run: {rows[1]['reason']}`" in guide.read_text("utf-8")


@pytest.mark.kept
@pytest.mark.parametrize(
    ("program", "caller"),
    [
        ("pure", 0),
        ("io", 0),
        ("debug", 0),
        ("pure, called in process 1", 1),
        *((f"{flavor}, on devices 3 and 1", 1) for flavor in FLAVORS),
    ],
)
def test_process_reports_that_another_one_makes_its_observed_calls(found, program, caller):
    """Of the devices 3 and 1, the first calls, which is in process 1."""
    rows = [process["observed"][program] for process in found]
    calls, none = rows[caller], rows[1 - caller]
    assert (calls["status"], calls["expected"], calls["calls"]) == ("kept", 1, 1)
    assert (none["status"], none["expected"], none["calls"]) == ("not_run", 0, 0)
    assert none["reason"] == "another process makes its calls on behalf of all"


@pytest.mark.kept
@BOTH
def test_zeros_of_another_process_are_reported_in_both(found, process):
    row = found[process]["observed"]["pure"]
    whole, zeros = [2 * x for x in range(8)], [0] * 8
    assert row["parts"] == ([zeros, zeros] if process else [whole, zeros])
    (text,) = row["warned"]
    assert text.startswith("a result of the jax pure callback double (processes.py:")
    assert found[process]["observed"]["io"]["warned"] == []  # the program computes with it


def test_error_in_the_other_process_names_the_process_that_failed(found):
    """It must not show an earlier error of the other process."""
    failed, other = (process["failing for all"] for process in found)
    assert "ValueError: no luck for all" in failed
    assert "failed in process 0" in other and "no luck here" not in other
