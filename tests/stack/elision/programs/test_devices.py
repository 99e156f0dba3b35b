"""The part of the battery that needs several devices runs in a separate process."""

from pathlib import Path


def test_each_call_site_has_the_expected_status_on_several_devices(in_process):
    done = in_process(Path(__file__).with_name("devices.py"), devices=4)
    assert "FAILED" not in done.stdout, done.stdout + done.stderr
