"""What differs between two runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


def test_program_that_ran_again_is_compared_run_by_run():
    def twice(first):
        with jaxcb.watching("total") as seen:
            jax.block_until_ready(jax.lax.scan(add, 0.0, jnp.float32([1, first])))
            jax.block_until_ready(jax.lax.scan(add, 0.0, jnp.float32([1, 1])))
        return seen

    assert sentences(twice(3), twice(2)) == ["total differs in step 1: 4, was 3"]
    assert sentences(twice(2), twice(2)) == []


def add(total, x):
    total = total + x
    return total, None


def watched(xs, start=0.0, function=add):
    with jaxcb.watching("total, x") as seen:
        jax.lax.scan(function, np.asarray(start, np.float32), np.float32(xs))
    return seen


def sentences(now, before, **options):
    return [str(one).partition(": ")[2] for one in now.compare(before, **options).differences]


@pytest.mark.parametrize(
    ("xs", "words", "steps"),
    [
        ([1, 1, 2, 1], "total differs from step 2 on: 4, was 3", (2,)),
        ([1, 1, 1, 2], "total differs in step 3: 5, was 4", (3,)),
        ([1, 2, 0, 1], "total differs in step 1: 3, was 2", (1,)),
        ([2, 0, 2, 0], "total differs in 2 of 4 steps, first in step 0: 2, was 1", (0,)),
        ([1, np.nan, 1, 1], "total differs from step 1 on: not finite, was 2", (1,)),
        ([1, 1, 1], "total is equal, but has 3 steps, had 4", None),
    ],
)
def test_variable_that_differs_is_named_with_the_first_step(xs, words, steps):
    comparison = watched(xs).compare(watched([1, 1, 1, 1]))
    line = add.__code__.co_firstlineno + 1
    assert str(comparison) == f"line {line} of add: {words}"
    (one,) = comparison.differences
    assert (one.name, one.function, one.steps) == ("total", "add", steps)


def test_equal_runs_have_no_difference():
    comparison = watched([1, np.nan]).compare(watched([1, np.nan]))
    assert (comparison.differences, comparison.compared) == ((), 1)
    assert str(comparison) == "no difference in 1 variable"


def test_numbers_are_equal_up_to_rtol_and_else_have_the_digits_that_differ():
    now, before = watched([1.00001]), watched([1])
    assert sentences(now, before) == ["total differs in step 0: 1.00001001, was 1"]
    assert sentences(now, before, rtol=1e-4) == []


def test_variable_of_one_run_only_or_with_more_rows_is_named():
    def other(total, by):
        total = total * 2
        total = total + by
        x = total * by
        return total, x

    other.__code__ = other.__code__.replace(co_name="add")
    now, before = watched([1], function=other), watched([1])
    assert sentences(now, before) == [
        "total has 2 rows, had 1, so it is not compared",
        "x is only in this run",
    ]
    assert sentences(before, now)[1:] == ["x is only in the earlier run"]
