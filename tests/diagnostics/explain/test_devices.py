"""The part of the status battery that needs several devices, in a separate process."""

from pathlib import Path


def test_explanation_equals_the_run_on_several_devices(in_process):
    done = in_process(Path(__file__).with_name("devices.py"), devices=4)
    assert "FAILED" not in done.stdout, done.stdout + done.stderr
    assert int(done.stdout.split()[-2]) >= 18
