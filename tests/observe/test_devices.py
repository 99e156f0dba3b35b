"""The part that needs several devices, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import jax


def test_calls_over_several_devices_are_as_ever_and_recorded():
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.observe.devices"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not ran.returncode, ran.stderr
    told = [line for line in ran.stdout.splitlines() if line.endswith("same")]
    partly = 3 if jax.__version_info__ >= (0, 10) else 0
    assert len(told) == 21 + partly, ran.stdout + ran.stderr
