"""The part of the battery that needs several devices, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path


def test_what_is_said_ahead_is_what_the_run_on_several_devices_shows():
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.explain.devices"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert not ran.returncode, ran.stderr
    assert "FAILED" not in ran.stdout, ran.stdout + ran.stderr
    assert int(ran.stdout.split()[-2]) >= 18
