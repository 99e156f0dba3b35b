"""Pure callbacks with a derivative rule can be differentiated; without one, the error helps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import FIVE_TO_2, like_first
from tests.upstream.upgraded import UPGRADED


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


@bessels
@pytest.mark.parametrize("v", [0, 1, 3])
def test_bessel_function_equals_scipy(make, bessel_spy, run, v):
    """Eager and jitted programs call it once, vmapped programs once per batch element."""
    host, seen = bessel_spy
    jv = make(host)
    expected = scipy.special.jv(v, Z)
    np.testing.assert_allclose(run(jv, np.int32(v), Z), expected, rtol=1e-5)
    np.testing.assert_allclose(run(jax.jit(jv), np.int32(v), Z), expected, rtol=1e-5)
    assert seen == 2 * [((), (4,))]
    seen.clear()
    batched = jax.vmap(jv, in_axes=(None, 0))
    np.testing.assert_allclose(run(batched, np.int32(v), Z), expected, rtol=1e-5)
    np.testing.assert_allclose(run(jax.jit(batched), np.int32(v), Z), expected, rtol=1e-5)
    assert seen == 8 * [((), ())]


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


@bessels
def test_bessel_gradient_outside_jit_equals_scipy(make, bessel_spy, run):
    """Three calls: the value, and the orders below and above."""
    host, seen = bessel_spy
    value, slope = run(jax.value_and_grad(make(host), argnums=1), np.int32(1), Z[0])
    np.testing.assert_allclose(value, scipy.special.jv(1, Z[0]), rtol=1e-5)
    np.testing.assert_allclose(slope, scipy.special.jvp(1, Z[0]), rtol=1e-5)
    assert len(seen) == 3


def test_error_of_differentiating_without_a_rule_names_the_function_and_the_fix(our_pure, spy):
    """JAX is still tracing, so the host is not called."""
    host, seen = spy(np.sin)
    with pytest.raises(ValueError, match=r"cannot differentiate .*sin.*(rule|custom_jvp)"):
        jax.grad(lambda x: our_pure(host, like_first)(x).sum())(FIVE_TO_2)
    assert seen == []


def test_reverse_rule_is_used_under_grad(spy, run):
    """The host is called once, in the forward pass; the backward rule is plain JAX code."""
    host, seen = spy(lambda x: np.sin(x))
    sin = jaxcb.pure(result="x", vmap_method="expand_dims")(host)
    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    np.testing.assert_allclose(
        run(jax.grad(lambda x: sin(x).sum()), FIVE_TO_2), np.cos(FIVE_TO_2), rtol=1e-6
    )
    assert len(seen) == 1
