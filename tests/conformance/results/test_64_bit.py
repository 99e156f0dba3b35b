"""A 64-bit result is exact with x64 enabled, and an error without; never truncated silently."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._arrays import X
from tests.conformance._parameters import eager_or_jit

WIDE = ["float64", "int64", "uint64", "complex128"]


@eager_or_jit
@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_without_x64_is_an_error_when_called(pure, dtype, compiled):
    """JAX raises too, before any host call."""
    seen = []
    f = pure(seen.append, jax.ShapeDtypeStruct((), np.dtype(dtype)))  # the declaration is valid
    with pytest.raises(ValueError, match=r"64|x64"):
        compiled(f)(X)
    assert seen == []


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_of_io_without_x64_is_an_error_when_called(io, dtype):
    """JAX raises too, before any host call."""
    seen = []
    f = io(seen.append, {"here": jax.ShapeDtypeStruct((), np.dtype(dtype))})
    with pytest.raises(ValueError, match=r"64|x64"):
        jax.jit(f)(X)
    assert seen == []


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_with_x64_is_exact(our_pure, run, dtype):
    returned_value = np.array(2**53 - 1, dtype)
    with jax.enable_x64(True):
        f = our_pure(lambda x: returned_value, jax.ShapeDtypeStruct((), np.dtype(dtype)))
        got = np.asarray(run(jax.jit(f), X))
    assert got.dtype == dtype
    assert got == returned_value


def test_result_declared_like_a_64_bit_argument_has_the_dtype_jax_gives_the_argument(run):
    """Without x64, JAX truncates x to 32 bits, and ``result="x"`` means the truncated dtype."""
    seen = []

    @jaxcb.pure(result="x")
    def double(x):
        seen.append(x.dtype.name)
        return 2 * x

    returned_value = run(double, np.ones(3))
    assert returned_value.dtype == np.float32
    np.testing.assert_array_equal(returned_value, 2 * np.ones(3))
    assert seen == ["float32"]
