"""The part of the battery that needs several devices, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path


def test_each_line_has_its_fate_on_several_devices():
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.fates.devices"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not ran.returncode, ran.stderr
    assert "FAILED" not in ran.stdout, ran.stdout + ran.stderr
