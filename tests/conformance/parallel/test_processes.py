"""Callbacks work in spawned processes, and in forked ones if JAX need not compile anything."""

from pathlib import Path

PROGRAM = Path(__file__).with_name("processes.py")


def expected(x):
    return {
        "eager": 2.0 * x,
        "jit": 2.0 * x,
        "vmap": [0.0, 2.0, 4.0],
        "grad": 2.0,
        "print": None,
        "called in this process": True,
        "notes": [x, x + 1.0, x, x + 1.0],
        "recorded": 3,
    }


def test_spawned_processes_make_their_own_calls(in_process):
    """The child processes import the registered functions again, with their derivative rules."""
    found = in_process(PROGRAM, "spawn").value
    assert found == {"parent": expected(3), "spawned": [expected(3), expected(4)]}


def test_forked_process_makes_eager_calls_and_runs_small_compiled_programs(in_process):
    """JAX warns about the fork. Programs that JAX has not compiled yet would hang in the child."""
    found = in_process(PROGRAM, "fork").value
    children, warned = found["forked"]
    assert children == {"eager, numpy": 0, "eager, JAX": 0, "compiled before": 0}
    assert warned
