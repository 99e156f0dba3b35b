"""JAX's callbacks on XLA's threads ignore ``with jax.enable_x64(True)`` of the calling thread.

JAX converts the argument to a JAX array on XLA's thread, where the option has its default value.
That truncates 64-bit values: arguments silently, results with an error. Ours passes XLA's values
unchanged.
"""

import numpy as np
import pytest

BIG = 2**40 + 7  # as int32: 7
THIRD = 1 / 3  # not exact in float32
CALLS = 40

wide = pytest.mark.parametrize(
    ("value", "dtype", "half"),
    [(BIG, "int64", ["int32", 7]), (THIRD, "float64", ["float32", np.float32(THIRD).item()])],
    ids=["int64", "float64"],
)


@pytest.fixture(scope="module")
def found(child):
    return child("x64_in_flight.py", values={"int64": BIG, "float64": THIRD})


@pytest.mark.long
@wide
def test_jax_truncates_arguments_to_32_bits(found, value, dtype, half):
    """XLA may make the first calls on the calling thread, where the arguments are complete."""
    theirs = found[dtype]["theirs"]
    assert half in theirs["arrived"]
    assert all(argument in (half, [dtype, value]) for argument in theirs["arrived"])
    assert "JaxRuntimeError" in theirs["results"]  # the result has 32 bits instead of 64


@wide
def test_ours_keeps_arguments_and_results_at_64_bits(found, value, dtype, half):
    ours = found[dtype]["ours"]
    assert ours["arrived"] == CALLS * [[dtype, value]]
    assert ours["results"] == CALLS * [2 * value]
