"""What watching adds to the program that XLA compiles: little, and the same for equal shapes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

LONG = 1 << 17  # float32 values that have half of what a branch may keep


def five(x):
    a = jnp.sin(x)
    b = jnp.cos(a)
    c = jnp.tan(b)
    d = jnp.exp(c)
    e = jnp.log(d)
    return e


def ten(x):
    a = five(x)
    return five(a)


def operations(f, shape, **options):
    """Return how often each operation stands in the lowered program."""
    with jaxcb.watching(**options):
        text = jax.jit(f).lower(jnp.ones(shape)).as_text()
    found = re.findall(r"stablehlo\.\w+|call @", text)
    return {name: found.count(name) for name in found}


def added(shape, **options):
    """Return how many operations five more values add, without their own."""
    more, fewer = (sum(operations(f, shape, **options).values()) for f in (ten, five))
    return more - fewer - 5


@pytest.mark.parametrize("shape", [(), (7,), (4, 5), (5000,)])
def test_value_that_is_looked_at_adds_four_operations(shape):
    """It and its inputs become vectors, which are summed together."""
    assert added(shape, first="nan") <= 4 * 5


@pytest.mark.parametrize("shape", [(), (7,), (4, 5), (5000,)])
def test_variable_with_all_numbers_adds_six_operations(shape):
    assert added(shape) <= 6 * 5


def test_block_has_one_branch_for_its_bad_values():
    assert operations(ten, (7,), first="nan")["stablehlo.if"] == 1


def test_small_values_are_summed_together():
    summed = {f: operations(f, (4, 5), first="nan")["stablehlo.reduce"] for f in (five, ten)}
    assert summed == {five: 1, ten: 1}


def test_values_that_are_large_together_have_several_branches():
    """They stay in memory until the branch."""
    assert operations(five, (LONG,), first="nan")["stablehlo.if"] > 1
    assert operations(five, (4 * LONG,), first="nan")["stablehlo.if"] == 5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_host_describes_values_of_each_dtype(dtype):
    def f(x, y):
        return x / y

    x, y = jnp.array([0, 1, 4], dtype), jnp.array([0, 0, 2], dtype)
    with jaxcb.watching(first="nan") as seen:
        jax.jit(f)(x, y)
    assert seen.first_bad.inputs == (("x", "in [0, 4]"), ("y", "in [0, 2]"))
    assert seen.first_bad.what == "NaN"


@pytest.mark.parametrize("size", [12, 5000])
def test_numbers_of_values_that_are_not_finite_are_those_of_the_others(size):
    def f(x):
        y = 1 / x
        return y

    x = np.linspace(0.5, 2, size, dtype=np.float32)
    x[::3], x[1::4] = 0, np.nan
    with jaxcb.watching("y") as seen:
        jax.jit(f)(x)
    with np.errstate(divide="ignore"):
        y = 1 / x
    fine = y[np.isfinite(y)]
    (row,) = seen.rows
    assert (row.min, row.max) == (fine.min(), fine.max())
    assert (row.nan, row.inf) == (np.isnan(y).sum(), np.isinf(y).sum())
    assert row.mean == pytest.approx(fine.mean(), rel=1e-5)
