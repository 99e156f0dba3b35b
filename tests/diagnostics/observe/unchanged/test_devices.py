"""Observing programs on several devices, which needs a separate process."""

from pathlib import Path

import jax


def test_calls_on_several_devices_are_the_same_and_recorded(in_process):
    done = in_process(Path(__file__).with_name("devices.py"), devices=4)
    same = [line for line in done.stdout.splitlines() if line.endswith("same")]
    partly = 3 if jax.__version_info__ >= (0, 10) else 0
    assert len(same) == 21 + partly, done.stdout + done.stderr
