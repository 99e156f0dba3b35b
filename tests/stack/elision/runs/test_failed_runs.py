"""Successful and failed runs are distinguished, even if neither made a call."""

import contextlib

import jax
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize

BOTH = "2 runs did not enter the branch or loop around it, and 1 run failed before reaching it"


def status_of(flavor, fails, values, branch=lambda a: a, **options):
    """Run a call of `first`, which raises if `fails`, and a branch around one of `inside`."""

    def first(x):
        if fails(float(x)):
            raise ValueError("no luck")
        return x

    def inside(x):
        return x

    a, b = (getattr(jaxcb, flavor)(host, result="x") for host in (first, inside))
    f = jax.jit(lambda x: jax.lax.cond(branch(a)(x) > 100, b, lambda y: y, x))
    with jaxcb.record(**options) as r:
        for value in values:
            with contextlib.suppress(jax.errors.JaxRuntimeError, ValueError):
                f(value).block_until_ready()
            with contextlib.suppress(jax.errors.JaxRuntimeError, ValueError):
                jax.effects_barrier()
    (reported,) = (row for row in summarize(r.recording) if row.site.function == "inside")
    return reported.status, reported.reason, reported.advice


@pytest.mark.parametrize("flavor", ["pure", "io"])
@pytest.mark.parametrize("capacity", [1_000, 1, 0])
@pytest.mark.parametrize("values", [(1.0, 2.0, 3.0), (3.0, 1.0, 2.0), (1.0, 3.0, 2.0)], ids=str)
def test_completed_and_failed_runs_before_a_branch_are_counted_separately(flavor, capacity, values):
    status, reason, advice = status_of(flavor, lambda x: x == 3, values, capacity=capacity)
    assert (status, reason) == (Status.NOT_REACHED, BOTH)
    assert "condition" in advice and "error" in advice


@pytest.mark.parametrize("flavor", ["pure", "io"])
def test_branch_is_not_run_if_all_runs_failed_before_it(flavor):
    status, reason, _ = status_of(flavor, lambda x: True, (1.0, 2.0))
    assert (status, reason) == (Status.NOT_RUN, "an earlier error stopped the program")


def test_two_failed_runs_are_counted_as_two():
    status, reason, _ = status_of("io", lambda x: x > 2, (1.0, 3.0, 4.0))
    assert status is Status.NOT_REACHED
    assert "1 run did not enter" in reason and "2 runs failed before" in reason


def test_no_run_is_invented_if_the_failing_call_is_in_a_branch():
    """JAX reports the two successful runs without effects, but not the failed one."""
    in_branch = lambda a: lambda x: jax.lax.cond(x > 2, a, lambda x: x, x)  # noqa: E731
    status, reason, _ = status_of("pure", lambda x: True, (1.0, 2.0, 3.0), in_branch)
    assert status is Status.NOT_REACHED
    assert reason in (BOTH, f"at least {BOTH}".replace("2 runs", "1 run"))
