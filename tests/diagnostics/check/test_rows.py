"""`check` of partitioned callbacks: each row of the result depends on the same row alone."""

import functools

import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.arange(12, dtype=np.float32).reshape(6, 2)


def checked(function, *args, result="x", partitioned=True, **options):
    made = jaxcb.pure(function, result=result, partitioned=partitioned, **options)
    found = jaxcb.check(made, *(args or (X,)))
    assert {one.kind for one in found.findings} <= {"rows alone"}
    return found


def first_row_of_each_part(x):
    return np.concatenate([x[:1] * 0, x[1:]])


WRONG = {
    "mean": (
        lambda x: x - x.mean(0),
        "rows depend on others: called with 2 parts of its 6 rows it returns -2.0 at [0, 0]; "
        "called with all rows, -5.0",
    ),
    "first of a part": (first_row_of_each_part, "it returns 0.0 at [3, 0]; called with all rows"),
    "fixed shape": (lambda x: np.resize(x, (6, 2)), "called with rows 0 to 2 of 6 alone it fails"),
    "one row": (lambda x: x + np.float32(len(x) % 3 > 0), "called with 6 parts of its 6 rows"),
}


@pytest.mark.parametrize("name", WRONG)
def test_function_that_looks_at_other_rows_is_found_with_the_rows(name):
    function, what = WRONG[name]
    (finding,) = checked(function).findings
    assert what in finding.what
    assert finding.advice.endswith("or drop partitioned=True.")


def test_rows_that_are_all_equal_do_not_hide_it():
    """The check makes up rows that differ."""
    (finding,) = checked(lambda x: x - x.mean(0), np.ones((4, 2), np.float32)).findings
    assert "depend on others" in finding.what


@pytest.mark.parametrize(
    ("function", "args", "options"),
    [
        (np.sin, (X,), {}),
        (lambda x: x, (np.arange(7),), {}),
        (lambda x, w: x @ w, (X, np.ones((2, 3), np.float32)),
         {"partitioned": "x", "result": "jax.numpy.zeros((6, 3))"}),
        (lambda x: {"n": x.sum(1), "x": x}, (X,), {"result": lambda x: {"n": x[:, 0], "x": x}}),
        (lambda t: t["a"] * t["b"], ({"a": X, "b": X},), {"partitioned": "t", "result": X}),
    ],
    ids=["ufunc", "integers", "matrix", "several results", "pytree"],
)  # fmt: skip
def test_function_of_each_row_has_no_finding(function, args, options):
    found = checked(function, *args, **options)
    assert found.ok, found
    assert "rows alone" in found.kept


def test_calls_are_the_halves_and_each_of_a_few_rows():
    sizes = []
    note = functools.partial(sizes.append)  # not seen in the source
    checked(lambda x: (note(x.shape[0]), x)[1], X)
    assert (sizes.count(3), sizes.count(1)) == (2 * 2, 6 * 2)  # with the rows given and made up
    sizes.clear()
    checked(lambda x: (note(x.shape[0]), x)[1], np.ones((11, 2), np.float32))
    assert (sizes.count(6), sizes.count(5), sizes.count(1)) == (2, 2, 0)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((X[:1],), "there are fewer than two rows"),
        ((X, X[:3]), "arguments and results do not have the same rows, so no program can call it"),
        ((np.float32(1),), "no argument has rows"),
    ],
)
def test_arguments_without_rows_to_divide_are_left_out(args, why):
    found = checked(lambda x, *_: x, *args)
    assert found.left_out["rows alone"] == why
