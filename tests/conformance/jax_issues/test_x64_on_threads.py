"""A callback on one of XLA's threads ignores ``with jax.enable_x64(True)`` of the calling thread.

JAX converts the argument to a JAX array on XLA's thread, where the option has its default value. So
64-bit values are narrowed, silently for arguments. Ours passes XLA's values unchanged.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ._both import OURS

BIG = 2**40 + 7  # as int32: 7
THIRD = 1 / 3  # no float32
CALLS = 40

wide = pytest.mark.parametrize(
    ("value", "dtype", "half"),
    [(BIG, "int64", ["int32", 7]), (THIRD, "float64", ["float32", np.float32(THIRD).item()])],
    ids=["int64", "float64"],
)


@pytest.fixture(scope="module")
def found(child):
    return child("x64_in_flight.py", values={"int64": BIG, "float64": THIRD})


@wide
def test_arguments_of_jax_arrive_cut_in_half(found, value, dtype, half):
    """Those of calls that XLA makes on a thread of its own; the first ones may be made at once."""
    theirs = found[dtype]["theirs"]
    assert half in theirs["arrived"]
    assert all(argument in (half, [dtype, value]) for argument in theirs["arrived"])
    assert "JaxRuntimeError" in theirs["results"]  # what comes back is half as wide as declared


@wide
def test_arguments_and_results_of_ours_are_whole(found, value, dtype, half):
    ours = found[dtype]["ours"]
    assert ours["arrived"] == CALLS * [[dtype, value]]
    assert ours["results"] == CALLS * [2 * value]


def pending(value, dtype):
    """`value` as an array that is still being computed, so that the call goes to a thread."""
    w = jnp.zeros((300, 300), dtype)
    return (w @ w)[0, 0] + jnp.asarray(value, dtype)


def test_jax_arrays_keep_their_width_with_ours_too():
    """``arrays="jax"`` asks for what JAX's callbacks give."""
    seen = []

    def host(x):
        seen.append((str(x.dtype), np.asarray(x).item()))
        return np.asarray(x)

    with jax.enable_x64(True):
        f = jax.jit(
            lambda x: OURS.pure_callback(host, jax.ShapeDtypeStruct((), np.int64), x, arrays="jax")
        )
        results = [f(pending(BIG, "int64")).item() for _ in range(CALLS)]
    assert results == CALLS * [BIG]
    assert seen == CALLS * [("int64", BIG)]
