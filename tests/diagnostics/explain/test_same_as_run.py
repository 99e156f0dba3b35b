"""For every program of the battery of statuses, the explanation equals the run."""

import pytest

from tests.stack.elision._battery import Hosts, compare
from tests.stack.elision.programs import (
    test_branches,
    test_derivatives,
    test_inner_jits,
    test_loops,
    test_mixed,
    test_straight,
    test_unused_under_derivatives,
    test_vmap,
)
from tests.stack.elision.runs import test_programs, test_runs

from ._same import alone, ask, check, check_calls, reported, returns, run

pytestmark = pytest.mark.slow

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
rows = pytest.mark.parametrize("row", [row for _, row in ROWS], ids=[name for name, _ in ROWS])


def test_the_battery_is_large_enough():
    assert len(ROWS) > 200


@rows
@alone
def test_explanation_equals_the_run(row):
    """The run after an explanation is as the battery expects of a run without one."""
    hosts = Hosts()
    made = row.program(hosts)
    explained = ask(made, hosts)
    recording, calls = run(made, hosts)
    check(explained, recording, calls)
    if not callable(row.lines):  # those need the text of the program, compiled once more
        compare(recording, row.lines, calls)


@pytest.mark.parametrize(
    "row", [row for _, row in ROWS[::10]], ids=[name for name, _ in ROWS[::10]]
)
@alone
def test_run_is_the_same_without_being_asked_and_so_is_the_result_after_it(row):
    asked, hosts = Hosts(), Hosts()
    made = row.program(asked)
    ask(made, asked)
    after, after_calls = run(made, asked)
    again = ask(made, asked)
    recording, calls = run(row.program(hosts), hosts)
    assert reported(after) == reported(again) == reported(recording)
    assert after_calls == calls
    check_calls(again, calls)
