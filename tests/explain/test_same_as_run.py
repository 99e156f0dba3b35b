"""Every program of the battery of fates: what is said before it runs is what its run shows."""

import pytest

from tests.fates import (
    test_branches,
    test_derivatives,
    test_inner_jits,
    test_loops,
    test_mixed,
    test_programs,
    test_runs,
    test_straight,
    test_unused_under_derivatives,
    test_vmap,
)
from tests.fates._battery import Hosts

from ._same import alone, ask, check, check_calls, returns, run, told

MODULES = (
    test_branches,
    test_derivatives,
    test_inner_jits,
    test_loops,
    test_mixed,
    test_programs,
    test_runs,
    test_straight,
    test_unused_under_derivatives,
    test_vmap,
)
ROWS = [
    (f"{module.__name__.rpartition('test_')[2]}: {row.name}", row)
    for module in MODULES
    for row in module.ROWS
    if returns(row.program)
]
rows = pytest.mark.parametrize(
    "program", [row.program for _, row in ROWS], ids=[n for n, _ in ROWS]
)


def test_the_battery_is_large_enough():
    assert len(ROWS) > 200


@rows
@alone
def test_what_is_said_before_and_after_a_run_is_what_the_run_shows(program):
    """One program is asked, run and asked again; the other runs without having been asked."""
    hosts, others = Hosts(), Hosts()
    made = program(hosts)
    explained = ask(made, hosts)
    recording, calls = run(program(others), others)
    check(explained, recording, calls)
    after, made_calls = run(made, hosts)
    again = ask(made, hosts)
    assert told(after) == told(again) == told(recording)
    assert made_calls == calls
    check_calls(again, calls)
