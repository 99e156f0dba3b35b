"""A result of 64 bits is exact under x64, and without it an error, never narrowed in silence."""

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
    """As with JAX: nothing ran, nothing was narrowed in silence; 0 calls."""
    seen = []
    f = pure(seen.append, jax.ShapeDtypeStruct((), np.dtype(dtype)))  # declaring it is no error
    with pytest.raises(ValueError, match=r"64|x64"):
        compiled(f)(X)
    assert seen == []


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_of_io_without_x64_is_an_error_when_called(io, dtype):
    """As with JAX; 0 calls."""
    seen = []
    f = io(seen.append, {"here": jax.ShapeDtypeStruct((), np.dtype(dtype))})
    with pytest.raises(ValueError, match=r"64|x64"):
        jax.jit(f)(X)
    assert seen == []


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_with_x64_is_exact(our_pure, run, dtype):
    """The same declaration, in a context that allows it; 1 call."""
    returned_value = np.array(2**53 - 1, dtype)
    with jax.enable_x64(True):
        f = our_pure(lambda x: returned_value, jax.ShapeDtypeStruct((), np.dtype(dtype)))
        got = np.asarray(run(jax.jit(f), X))
    assert got.dtype == dtype
    assert got == returned_value


def test_result_like_a_64_bit_numpy_argument_is_as_wide_as_jax_holds_it(run):
    """``"x"`` is x as JAX sees it: no error, 32 bits without x64; 1 call."""
    seen = []

    @jaxcb.pure(result="x")
    def double(x):
        seen.append(x.dtype.name)
        return 2 * x

    returned_value = run(double, np.ones(3))
    assert returned_value.dtype == np.float32
    np.testing.assert_array_equal(returned_value, 2 * np.ones(3))
    assert seen == ["float32"]
