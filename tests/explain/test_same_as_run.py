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
def test_a_fresh_program_is_explained_as_its_first_run_is_recorded(program):
    hosts, others = Hosts(), Hosts()
    explained = ask(program(hosts), hosts)
    check(explained, *run(program(others), others))


@rows
@alone
def test_a_program_that_has_run_is_explained_as_its_run_was_recorded(program):
    hosts = Hosts()
    made = program(hosts)
    recording, calls = run(made, hosts)
    explained = ask(made, hosts)
    assert told(explained) == told(recording)
    check_calls(explained, calls)


@rows
@alone
def test_a_program_that_was_explained_is_recorded_as_if_it_were_not(program):
    hosts = Hosts()
    made = program(hosts)
    explained = ask(made, hosts)
    recording, calls = run(made, hosts)
    assert told(recording) == told(explained)
    check_calls(explained, calls)
