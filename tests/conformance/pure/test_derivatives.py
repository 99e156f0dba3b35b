"""Pure callbacks with a derivative rule can be differentiated; without one, the error helps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import like_first
from tests.upgraded import UPGRADED


def bessel_host(v, z):
    return scipy.special.jv(v, z).astype(np.asarray(z).dtype)


def like_second(v, z):
    return like_first(z)


def bessel_rule(jv):
    def rule(primals, tangents):
        (v, z), (_, dz) = primals, tangents
        below, above = jv(v - 1, z), jv(v + 1, z)
        return jv(v, z), dz * jnp.where(v == 0, -above, 0.5 * (below - above))

    return rule


def decorated_bessel(host):
    jv = jaxcb.pure(result="z")(host)
    jv.defjvp(bessel_rule(jv))
    return jv


def bessel_of(pure_callback):
    def make(host):
        @jax.custom_jvp
        def jv(v, z):
            return pure_callback(host, like_second(v, z), v, z, vmap_method="sequential")

        jv.defjvp(bessel_rule(jv))
        return jv

    return make


BESSELS = {
    "jax": bessel_of(jax.pure_callback),
    "drop-in": bessel_of(jaxcb.pure_callback),
    "decorator": decorated_bessel,
}
bessels = pytest.mark.parametrize("make", BESSELS.values(), ids=BESSELS)
Z = np.float32([0.5, 1.5, 2.5, 4.0])


@pytest.fixture
def bessel_spy():
    seen = []

    def bessel(v, z):
        v, z = np.asarray(v), np.asarray(z)
        assert v.dtype == np.int32
        seen.append((v.shape, z.shape))
        return bessel_host(v, z)

    return bessel, seen


@pytest.mark.long
@bessels
@pytest.mark.parametrize(
    ("v", "order", "calls"), [(0, 1, 1), (2, 1, 2), (2, 2, 4), (0, 3, 6), (2, 3, 7)]
)
def test_derivatives_of_bessel_equal_scipy(make, bessel_spy, run, v, order, calls):
    """Under jit, JAX removes the calls whose results are unused, so few calls remain."""

    def derivative(jv):
        f = lambda z: jv(np.int32(v), z)  # noqa: E731
        for _ in range(order):
            f = jax.grad(f)
        return f

    host, seen = bessel_spy
    expected = scipy.special.jvp(v, Z, order)
    if UPGRADED and make is not decorated_bessel:  # JAX traces jv once, which ours does not
        run(jax.jit(derivative(BESSELS["jax"](host))), Z[1])
        calls = len(seen)
        seen.clear()
    f = jax.jit(derivative(make(host)))
    np.testing.assert_allclose(run(f, Z[1]), expected[1], rtol=1e-4, atol=1e-6)
    assert seen == calls * [((), ())]
    seen.clear()
    returned_value = run(jax.jit(jax.vmap(derivative(make(host)))), Z)
    np.testing.assert_allclose(returned_value, expected, rtol=1e-4, atol=1e-6)
    assert seen == 4 * calls * [((), ())]
