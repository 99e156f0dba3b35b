"""Ufuncs are registered without a result, because they can compute its shape and dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as shapes

import jupyter_jaxcb as jaxcb

Z = np.linspace(0.1, 4, 6, dtype=np.float32)


def test_scipys_bessel_function_is_registered_in_one_line():
    jv = jaxcb.pure(scipy.special.jv, vmap_method="expand_dims", derivative="finite")
    expected = scipy.special.jv(1, Z)
    for f in (jv, jax.jit(jv), jax.vmap(jv, (None, 0))):
        np.testing.assert_allclose(f(1, Z), expected, rtol=1e-6)
    slope = (scipy.special.jv(0, Z) - scipy.special.jv(2, Z)) / 2
    got = jax.vmap(jax.grad(jv, 1), (None, 0))(1, Z)
    np.testing.assert_allclose(got, slope, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "ufunc", [np.add, np.less, np.arctan2, np.power, np.frexp, np.divmod, np.isnan, np.exp],
    ids=lambda ufunc: ufunc.__name__,
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.float16], ids=str)
def test_values_and_dtypes_agree_with_numpy(ufunc, dtype):
    args = [np.array([1, 2, 3], dtype)] + [np.array([[2], [1]], dtype)] * (ufunc.nin - 1)
    try:
        wanted = ufunc(*args)
    except TypeError:
        with pytest.raises(ValueError, match=f"cannot determine the result of {ufunc.__name__}"):
            jaxcb.pure(ufunc)(*args)
        return
    got = jax.jit(jaxcb.pure(ufunc))(*args)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == jax.dtypes.canonicalize_dtype(other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-6)


@given(shapes.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
def test_shapes_broadcast_as_in_numpy(drawn):
    one, other = (np.ones(shape, np.float32) for shape in drawn.input_shapes)
    result = jax.eval_shape(jaxcb.pure(np.add), one, other)
    assert (result.shape, result.dtype) == (drawn.result_shape, jnp.float32)


@given(st.integers(0, 4).filter(lambda count: count != 2))
def test_error_names_a_wrong_number_of_arguments(count):
    with pytest.raises(ValueError, match=f"add takes 2 arguments, not {count}"):
        jaxcb.pure(np.add)(*[1.0] * count)


@pytest.mark.parametrize("value", ["a", None, [1.0, 2.0]], ids=["str", "None", "list"])
def test_error_names_an_argument_that_is_no_array(value):
    with pytest.raises(ValueError, match=r"add got .+ as argument 2, which is not a number or an "):
        jaxcb.pure(np.add)(1.0, value)


def test_error_names_shapes_that_do_not_broadcast():
    with pytest.raises(
        ValueError, match=r"result of add\(float32\[2\], float32\[3\]\): shape mism"
    ):
        jaxcb.pure(np.add)(np.ones(2, np.float32), np.ones(3, np.float32))


def test_generalized_ufunc_needs_a_result():
    with pytest.raises(ValueError, match=r"cannot register matmul .* without its result"):
        jaxcb.pure(np.matmul)
