"""What differs between two runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


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


def test_variable_on_another_line_is_compared():
    def moved(total, x):

        total = total + x
        return total, None

    moved.__code__ = moved.__code__.replace(co_name="add")
    now = watched([1, 2], function=moved)
    assert now.series[0].line != add.__code__.co_firstlineno + 1
    assert sentences(now, watched([1, 1])) == ["total differs in step 1: 3, was 2"]


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


def test_another_shape_and_the_number_that_differs_are_named():
    assert sentences(watched([1], [0, 0]), watched([1])) == ["total is float32[2], was float32[]"]
    now, before = watched([1], [0, 2]), watched([1], [1, 1])
    assert sentences(now, before) == ["total differs in step 0: min 1, was 2"]


def test_values_of_small_arrays_in_another_order_differ():
    now, before = watched([1], [0, 2, 1]), watched([1], [0, 1, 2])
    assert sentences(now, before) == ["total differs in step 0: value 1 3, was 2"]


def test_batch_element_that_differs_is_named():
    def run(starts):
        with jaxcb.watching("total") as seen:
            jax.vmap(lambda start: jax.lax.scan(add, start, jnp.ones(2)))(jnp.float32(starts))
        return seen

    assert sentences(run([0, 5, 0]), run([0, 0, 0])) == [
        "total differs from step 0 on in batch element (1,): 6, was 1"
    ]


def test_long_list_is_cut():
    names = [f"v{n}" for n in range(30)]
    source = "def f(x):\n" + "".join(f"    {name} = x + {n}\n" for n, name in enumerate(names))
    space = {}
    exec(compile(source, __file__, "exec"), space)

    def run(x):
        with jaxcb.watching(names) as seen:
            space["f"](jnp.float32(x))
        return seen

    *_, last = str(run(1).compare(run(2))).splitlines()
    assert last == "and 10 more differ"


def test_program_that_ran_again_is_compared_run_by_run():
    def twice(first):
        with jaxcb.watching("total") as seen:
            jax.block_until_ready(jax.lax.scan(add, 0.0, jnp.float32([1, first])))
            jax.block_until_ready(jax.lax.scan(add, 0.0, jnp.float32([1, 1])))
        return seen

    assert sentences(twice(3), twice(2)) == ["total differs in step 1: 4, was 3"]
    assert sentences(twice(2), twice(2)) == []


def seen_of(value, **options):
    with jaxcb.watching("y", **options) as seen:
        y = jnp.float32(value) * 1
    del y
    return seen


def test_numbers_of_the_user_that_one_run_lacks_are_not_compared():
    with_norm = seen_of(1, norm=jnp.linalg.norm)
    assert str(seen_of(1).compare(with_norm)) == "no difference in 1 variable"
    assert str(with_norm.compare(seen_of(1, norm=lambda x: x + 1))).endswith("norm 1, was 2")


@pytest.mark.parametrize("rtol", ["a", float("nan"), -1, 1, None])
def test_relative_difference_that_is_none_is_refused(rtol):
    with pytest.raises(ValueError, match="is no relative difference"):
        seen_of(1).compare(seen_of(1), rtol=rtol)


def test_other_object_is_not_compared():
    with pytest.raises(TypeError, match="takes what another block saw, not 3"):
        seen_of(1).compare(3)
