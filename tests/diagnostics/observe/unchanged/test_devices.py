"""The part that needs several devices, in a process of its own."""

from pathlib import Path

import jax


def test_calls_over_several_devices_are_as_ever_and_recorded(in_process):
    done = in_process(Path(__file__).with_name("devices.py"), devices=4)
    reported = [line for line in done.stdout.splitlines() if line.endswith("same")]
    partly = 3 if jax.__version_info__ >= (0, 10) else 0
    assert len(reported) == 21 + partly, done.stdout + done.stderr
