"""`make test-gpu`: the tests on an accelerator, tried on the CPU."""

import subprocess
import sys

import pytest

from tests.accelerator.__main__ import GROUPS, ROOT


def test_table_names_the_device_and_counts_the_tests_without_other_packages(in_process):
    # Not even cffi, which numba does without.
    done = in_process(["-m", "tests.accelerator"], "compiled", "lowering")
    device, table = done.stdout.split("\n\n")
    assert device.startswith("1 x cpu as cpu with JAX ")
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == ["| lowering", "| compiled"]
    assert rows[1][1:4] == ["2", "0", "0"]
    assert int(rows[0][1]) > 30 and rows[0][2:4] == ["0", "0"]


def test_failing_test_fails_the_command(tmp_path, monkeypatch, capfd):
    from tests.accelerator.__main__ import main

    failing = tmp_path / "test_failing.py"
    failing.write_text("def test_fails():\n    assert not 1\n\ndef test_passes():\n    pass\n")
    monkeypatch.setitem(GROUPS, "lowering", (str(failing),))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert main(["lowering"]) == 1
    out, err = capfd.readouterr()
    assert "| lowering | 1 | 1 | 0 |" in out
    assert "assert not 1" in err


def test_unknown_group_is_refused_with_the_known_ones():
    done = subprocess.run(
        [sys.executable, "-m", "tests.accelerator", "flavor"],
        cwd=ROOT, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 1
    assert "flavor: no such group; there are conformance, flavors" in done.stderr


@pytest.mark.parametrize("paths", GROUPS.values(), ids=GROUPS)
def test_each_group_has_tests(paths):
    assert all(any((ROOT / path).rglob("test_*.py")) for path in paths)
