"""The examples of the guide to several devices run on four devices, as it says."""

from ._blocks import REPOSITORY, python_blocks


def test_examples_print_one_call_and_four_calls(in_process):
    text = (REPOSITORY / "docs/guide/several-devices.md").read_text("utf-8")
    first, second = python_blocks(text)
    printed = in_process(first, devices=4).stdout
    calls = [line.split(" calls, ")[0] for line in printed.splitlines()]
    assert calls == ["1", "4", "4"]
    assert printed.count("True") == 3
    assert [line.count("'data'") for line in printed.splitlines()] == [0, 1, 1]
    assert in_process(second, devices=4).stdout == "True\n"
