"""The Bessel function of the first kind of integer order, with its recurrence as forward rule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jupyter_jaxcb as jaxcb

Z = np.array([0.5, 1.5, 2.5, 4.0, 9.0])


@jaxcb.pure(result="z", vmap_method="expand_dims")
def jv(v, z):
    return scipy.special.jv(v, z)


@jv.defjvp
def jv_jvp(primals, tangents):
    (v, z), (_, dz) = primals, tangents
    return jv(v, z), dz * (jv(v - 1, z) - jv(v + 1, z)) / 2


@pytest.fixture(params=[False, True], ids=["float32", "x64"])
def precision(request):
    """Yield the dtype of z and the tolerance of the result."""
    with jax.enable_x64(request.param):
        yield (np.float64, 1e-12) if request.param else (np.float32, 1e-4)


VARIANTS = {
    "one by one": lambda f, z: jnp.stack([f(x) for x in z]),
    "jit": lambda f, z: jnp.stack([jax.jit(f)(x) for x in z]),
    "vmap": lambda f, z: jax.vmap(f)(z),
    "jit of vmap": lambda f, z: jax.jit(jax.vmap(f))(z),
}


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("v", [0, 3])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_value_and_derivatives_are_those_of_scipy(precision, variant, v, order):
    dtype, tolerance = precision

    def f(z):
        return jv(jnp.int32(v), z)

    for _ in range(order):
        f = jax.grad(f)
    returned_value = variant(f, jnp.asarray(Z, dtype))
    assert returned_value.dtype == dtype
    expected = scipy.special.jvp(v, Z, order)
    np.testing.assert_allclose(returned_value, expected, rtol=tolerance, atol=tolerance / 100)


def test_orders_can_be_batched_too():
    orders, z = jnp.arange(4), jnp.float32(Z[:4])
    slope = jax.jit(jax.vmap(jax.grad(jv, argnums=1)))(orders, z)
    np.testing.assert_allclose(slope, scipy.special.jvp(np.arange(4), Z[:4]), rtol=1e-4)


def test_integer_order_has_no_derivative():
    gradient = jax.grad(jv, argnums=(0, 1), allow_int=True)(jnp.int32(1), jnp.float32(2))
    assert gradient[0].dtype == jax.dtypes.float0
    np.testing.assert_allclose(gradient[1], scipy.special.jvp(1, 2.0), rtol=1e-5)
