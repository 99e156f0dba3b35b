"""What the user sees of every failure in every kind of program; battery.py has the tables.

golden.txt has the expected output: the functions in the traceback, innermost last, and the last
lines. JAXCB_WRITE_GOLDEN=1 writes it again, after an intended change.
"""

import os
import re
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("battery.py")
GOLDEN = Path(__file__).with_name("golden.txt")
FLAVORS = ("pure", "io", "io ordered", "debug", "buffer")
FAST = (
    "pure: jit, third call",
    "buffer: jit, third call",
)  # on the C++ fast path, which raises ValueError
NO_EXCEPTION = ("BaseException", "SystemExit", "KeyboardInterrupt")
MONITORED = sys.version_info >= (3, 12)  # Python reports what C++ raises


@pytest.fixture(scope="module")
def cases(in_process):
    """Return a function that returns the cases of a flavor and their reports."""
    done = in_process(PROGRAM, *FLAVORS, devices=2)
    assert "Traceback" not in done.stderr, done.stderr  # nothing is printed twice, or at exit

    def cases(flavor):
        return [one for one in done.value.items() if one[0].startswith(f"{flavor}: ")]

    return cases


def is_fast(case):
    return case.startswith(FAST)


def is_exception(case):
    return case.split(": ")[2] not in NO_EXCEPTION


flavors = pytest.mark.parametrize("flavor", FLAVORS)


@pytest.mark.long
@flavors
def test_every_flavor_fails_in_every_program(cases, flavor):
    """Otherwise the tests below could pass because nothing was run."""
    assert len(cases(flavor)) == {"io ordered": 63, "debug": 56, "buffer": 56}.get(flavor, 72)


@flavors
def test_host_error_always_returns_the_original_exception(cases, flavor):
    assert [case for case, reported in cases(flavor) if not reported["reached"]] == []


@flavors
def test_error_has_jaxs_class_and_the_users_exception_as_cause(cases, flavor):
    for case, reported in cases(flavor):
        if not is_exception(case) or case.startswith("debug: eager"):
            continue
        assert reported["raised"] == ("ValueError" if is_fast(case) else "JaxRuntimeError"), case
        assert reported["is the cause"] or (is_fast(case) and not MONITORED), case


def test_eager_debug_callback_raises_the_exception_itself(cases):
    for case, reported in cases("debug"):
        if case.startswith("debug: eager"):
            assert reported["itself"], case


@flavors
def test_exceptions_that_are_not_errors_are_raised_unchanged(cases, flavor):
    for case, reported in cases(flavor):
        if not is_exception(case):
            assert reported["itself"] or (is_fast(case) and not MONITORED), case


@flavors
def test_next_call_and_an_unrelated_call_work(cases, flavor):
    for case, reported in cases(flavor):
        assert (reported["next"], reported["unrelated"]) == (True, 3.0), case


@flavors
def test_message_is_short(cases, flavor):
    """It does not include XLA's stack of every frame below the call."""
    for case, reported in cases(flavor):
        if not is_fast(case) or MONITORED:
            assert reported["length"] < 400, case


def text(case, reported):
    path = " > ".join(reported["frames"][2:])  # without those of outcome() and run()
    lines = [re.sub(r"battery.py:\d+", "battery.py", line) for line in reported["shown"]]
    if "shard" in case:  # either shard may be first
        lines = [re.sub(r"in call \d", "in one call", line) for line in lines]
    return "".join(f"    {line}\n" for line in [path, *lines])


def test_user_sees_the_golden_output(cases):
    shown = {case: text(case, reported) for flavor in FLAVORS for case, reported in cases(flavor)}
    if os.environ.get("JAXCB_WRITE_GOLDEN") == "1":
        GOLDEN.write_text("".join(f"{case}\n{lines}" for case, lines in shown.items()))
    agreed = dict(re.findall(r"^(\S.*)\n((?: {4}.*\n)+)", GOLDEN.read_text(), re.MULTILINE))
    assert shown.keys() == agreed.keys()
    for case, lines in shown.items():
        if is_fast(case) and MONITORED and not is_exception(case):
            # Python leaves out the frame in which one exception replaced the other.
            lines, agreed[case] = lines.split("\n", 1)[1], agreed[case].split("\n", 1)[1]
        assert lines == agreed[case], case
