"""For every program of the status battery, the explanation equals the run."""

from pathlib import Path

import pytest

from tests.stack.elision._battery import Hosts, compare
from tests.stack.elision.programs import (
    test_branches,
    test_derivatives,
    test_inner_jits,
    test_loops,
    test_mixed,
    test_unused_under_derivatives,
    test_vmap,
)

from ._same import (
    check,
    check_calls,
    explain_only,
    in_new_thread,
    run,
    sorted_facts,
)

pytestmark = pytest.mark.slow

MODULES = (
    test_branches,
    test_derivatives,
    test_inner_jits,
    test_loops,
    test_mixed,
    test_unused_under_derivatives,
    test_vmap,
)
ROWS = [
    (f"{module.__name__.rpartition('test_')[2]}: {row.name}", row)
    for module in MODULES
    for row in module.ROWS
    if not row.ran
]
rows = pytest.mark.parametrize("row", [row for _, row in ROWS], ids=[name for name, _ in ROWS])


@pytest.mark.long
@rows
@in_new_thread
def test_explanation_equals_the_run(row):
    """The run still has the statuses that the battery expects of a run without an explanation."""
    hosts = Hosts()
    made = row.program(hosts)
    explained = explain_only(made, hosts)
    recording, calls = run(made, hosts)
    check(explained, recording, calls)
    if not callable(row.lines):  # callables need the compiled text, which would compile it again
        compare(recording, row.lines, calls)


@pytest.mark.long
@pytest.mark.parametrize(
    "row", [row for _, row in ROWS[::10]], ids=[name for name, _ in ROWS[::10]]
)
@in_new_thread
def test_explaining_does_not_change_the_run_and_running_does_not_change_the_explanation(row):
    explained_hosts, hosts = Hosts(), Hosts()
    made = row.program(explained_hosts)
    explain_only(made, explained_hosts)
    after, after_calls = run(made, explained_hosts)
    again = explain_only(made, explained_hosts)
    recording, calls = run(row.program(hosts), hosts)
    assert sorted_facts(after) == sorted_facts(again) == sorted_facts(recording)
    assert after_calls == calls
    check_calls(again, calls)


@pytest.mark.long
def test_explanation_equals_the_run_on_several_devices(in_process):
    done = in_process(Path(__file__).with_name("devices.py"), devices=4)
    assert "FAILED" not in done.stdout, done.stdout + done.stderr
    assert int(done.stdout.split()[-2]) >= 17
