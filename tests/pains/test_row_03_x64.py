"""Inside ``with jax.enable_x64(True)`` a callback on a thread of XLA's knows nothing of it.

JAX hands the argument over as an array of its own, made on the thread that calls: there the
option has its default, so 64-bit values are cut in half, silently for arguments. Ours hands over
what XLA computed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ._both import OURS, THEIRS

BIG = 2**40 + 7  # as int32: 7
THIRD = 1 / 3  # no float32
CALLS = 40


def pending(value, dtype):
    """`value` as an array that is still being computed, so that the call goes to a thread."""
    w = jnp.zeros((300, 300), dtype)
    return (w @ w)[0, 0] + jnp.asarray(value, dtype)


def calls(callbacks, host, declared, value, dtype):
    """The answers to `CALLS` calls, dispatched without waiting."""
    f = jax.jit(lambda x: callbacks.pure_callback(host, declared, x))
    return [f(pending(value, dtype)) for _ in range(CALLS)]


@pytest.fixture
def arrived():
    """``arrived(callbacks, value, dtype)``: dtype and value of every argument."""

    def made(callbacks, value, dtype):
        seen = []

        def host(x):
            seen.append((str(x.dtype), np.asarray(x).item()))
            return np.float32(0)

        with jax.enable_x64(True):
            answers = calls(callbacks, host, jax.ShapeDtypeStruct((), np.float32), value, dtype)
            jax.block_until_ready(answers)
        assert len(seen) == CALLS
        return seen

    return made


@pytest.mark.parametrize(
    ("value", "dtype", "half"),
    [(BIG, "int64", ("int32", 7)), (THIRD, "float64", ("float32", np.float32(THIRD).item()))],
    ids=["int64", "float64"],
)
def test_arguments_of_jax_arrive_cut_in_half_and_ours_whole(arrived, value, dtype, half):
    theirs = arrived(THEIRS, value, dtype)
    assert half in theirs
    assert set(theirs) <= {half, (dtype, value)}
    assert arrived(OURS, value, dtype) == CALLS * [(dtype, value)]


def test_float64_results_of_jax_are_an_error_and_ours_exact():
    """The host function answers with the argument doubled, in NumPy."""

    def double(x):
        return np.asarray(x) * 2

    with jax.enable_x64(True):
        declared = jax.ShapeDtypeStruct((), np.float64)
        with pytest.raises(jax.errors.JaxRuntimeError, match="float64"):
            jax.block_until_ready(calls(THEIRS, double, declared, THIRD, "float64"))
        answers = calls(OURS, double, declared, THIRD, "float64")
        assert [answer.item() for answer in answers] == CALLS * [THIRD * 2]


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
        answers = [f(pending(BIG, "int64")).item() for _ in range(CALLS)]
    assert answers == CALLS * [BIG]
    assert seen == CALLS * [("int64", BIG)]
