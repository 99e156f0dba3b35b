"""`make test-gpu`: the tests on an accelerator, tried on the CPU."""


def test_table_names_the_device_and_counts_the_tests_without_other_packages(in_process):
    # Not even cffi, which numba does without.
    done = in_process(["-m", "tests.accelerator"], "compiled", "lowering")
    device, table = done.stdout.split("\n\n")
    assert device.startswith("1 x cpu as cpu with JAX ")
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == ["| lowering", "| compiled"]
    assert rows[1][1:4] == ["2", "0", "0"]
    assert int(rows[0][1]) > 30 and rows[0][2:4] == ["0", "0"]
