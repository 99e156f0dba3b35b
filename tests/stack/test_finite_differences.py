"""``derivative="finite"``: central differences on the host, against derivatives known exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Fate
from jupyter_jaxcb.stack.derivatives._finite_differences import step_sizes

Z = np.linspace(0.2, 5, 4, dtype=np.float32)


@jaxcb.pure(result="z", vmap_method="expand_dims", derivative="finite")
def bessel(v, z):
    return scipy.special.jv(v, z)


def slope(z):
    return (scipy.special.jv(0, z) - scipy.special.jv(2, z)) / 2


WAYS = {
    "grad": jax.grad(lambda z: bessel(1, z).sum()),
    "jit of grad": jax.jit(jax.grad(lambda z: bessel(1, z).sum())),
    "vmap of grad": jax.vmap(jax.grad(lambda z: bessel(1, z))),
    "jit of vmap of grad": jax.jit(jax.vmap(jax.grad(lambda z: bessel(1, z)))),
    "forward": lambda z: jax.jvp(lambda z: bessel(1, z), (z,), (jnp.ones_like(z),))[1],
    "jacfwd": lambda z: jnp.diag(jax.jit(jax.jacfwd(lambda z: bessel(1, z)))(z)),
    "jacrev": lambda z: jnp.diag(jax.jacrev(lambda z: bessel(1, z))(z)),
    "linearize": lambda z: jax.linearize(lambda z: bessel(1, z), z)[1](jnp.ones_like(z)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_derivative_is_the_analytic_one(way):
    np.testing.assert_allclose(way(jnp.asarray(Z)), slope(Z), rtol=1e-3, atol=1e-4)


def test_forward_and_reverse_mode_agree_with_differences_of_jax():
    check_grads(lambda z: bessel(1, z), (jnp.asarray(Z),), 1, ("fwd", "rev"), atol=1e-2, rtol=1e-2)


def test_gradient_through_a_loop_is_that_of_the_same_loop_in_jax():
    square = jaxcb.pure(lambda x: x**2 / 2, result=lambda x: x, derivative="finite")

    def run(f, x):
        return jax.lax.scan(lambda c, _: (f(c) + 0.1 * c, None), x, length=4)[0].sum()

    x = jnp.float32([0.3, -0.7])
    got = jax.jit(jax.grad(lambda x: run(square, x)))(x)
    np.testing.assert_allclose(got, jax.grad(lambda x: run(lambda c: c**2 / 2, x))(x), rtol=1e-3)


def test_only_what_is_differentiated_is_moved_and_in_one_crossing():
    seen = []

    @jaxcb.pure(result="x", derivative="finite")
    def f(x, y, n):
        seen.append((x.dtype.name, y.dtype.name, n.dtype.name))
        return x * y * n

    with jaxcb.record() as r:
        got = jax.jit(jax.vmap(jax.grad(f), (0, None, None)))(jnp.arange(5.0), 2.0, 3)
    np.testing.assert_allclose(got, 6.0, rtol=1e-4)
    assert seen == [("float64", "float32", "int32")] * 10  # two for each lane
    assert len({call.crossing for call in r.recording}) == 1
    assert {o.fate for o in r.recording.outcomes} == {Fate.LIVE, Fate.UNUSED}


def test_pytrees_integers_and_results_that_are_not_used():
    @jaxcb.pure(result=lambda p, k: {"a": p["x"], "n": jax.ShapeDtypeStruct((), np.int32)},
                derivative="finite")  # fmt: skip
    def f(p, k):
        return {"a": p["x"] ** 2 * k + p["y"].sum(), "n": np.int32(len(p["x"]))}

    p = {"x": jnp.arange(1.0, 4.0), "y": jnp.ones(2)}
    value, grad = jax.value_and_grad(lambda p: f(p, 2)["a"].sum())(p)
    np.testing.assert_allclose(value, 34)
    np.testing.assert_allclose(grad["x"], [4, 8, 12], rtol=1e-3)
    np.testing.assert_allclose(grad["y"], [3, 3], rtol=1e-3)
    assert jax.jit(lambda p: f(p, 2)["n"])(p) == 3


@given(st.floats(-20, 20), st.sampled_from([1e-12, 1e-3, 1.0, 1e6]))
def test_step_goes_with_the_scale_of_the_argument(exponent, size):
    x = np.float32(size) * np.float32([1.0, 0.5, 0.0])
    steps = step_sizes(x)
    assert np.all(steps > 0)
    np.testing.assert_allclose(steps / steps[0], [1, 0.5, 0.01], rtol=1e-5)
    square = jaxcb.pure(lambda x: x**3, result=lambda x: x, derivative="finite")
    got = jax.grad(lambda x: square(x).sum())(x)
    np.testing.assert_allclose(got, 3 * x**2, rtol=1e-3, atol=1e-3 * float(size) ** 2)


def test_step_of_zeros_is_that_of_ones_and_smaller_for_wider_dtypes():
    assert np.all(step_sizes(np.zeros(2, np.float32)) == step_sizes(np.ones(2, np.float32)))
    assert step_sizes(np.ones(1)) < step_sizes(np.ones(1, np.float32)) < 0.01


def test_second_derivative_says_what_to_write():
    with pytest.raises(TypeError, match=r"bessel twice .* written in terms of bessel: @bessel.def"):
        jax.hessian(lambda z: bessel(1, z))(1.0)


def test_complex_numbers_are_refused_by_name():
    f = jaxcb.pure(lambda x: x, result=lambda x: x, derivative="finite")
    with pytest.raises(TypeError, match=r"finite differences of <lambda>: complex64 is complex"):
        jax.jvp(f, (1j,), (1j,))


def test_unknown_derivative_is_refused():
    with pytest.raises(ValueError, match="unknown derivative 'central': it is None or 'finite'"):
        jaxcb.pure(lambda x: x, result="x", derivative="central")


def test_rule_given_later_replaces_the_differences():
    f = jaxcb.pure(np.sin, result=lambda x: x, derivative="finite")
    f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * tangents[0]))
    assert jax.grad(f)(0.0) == 7.0


def test_answer_of_another_shape_for_moved_arguments_is_named():
    f = jaxcb.pure(
        lambda x: x if x.dtype == np.float32 else x[:1], result=lambda x: x, derivative="finite"
    )
    with pytest.raises(Exception, match=r"<lambda>, called for finite differences .* shape \(1,\)"):
        jax.grad(lambda x: f(x).sum())(jnp.ones(2))


def test_simulator_is_fitted_by_its_gradient():
    """A damped oscillator, solved by SciPy; its two parameters are found from its positions."""
    times = np.linspace(0, 4, 12)

    def simulate(parameters):
        stiffness, damping = np.asarray(parameters, np.float64)
        solved = scipy.integrate.solve_ivp(
            lambda t, y: [y[1], -stiffness * y[0] - damping * y[1]], (0, 4), [1.0, 0.0],
            t_eval=times, rtol=1e-8, atol=1e-10,
        )  # fmt: skip
        return solved.y[0]

    positions = jaxcb.pure(
        simulate, result=jax.ShapeDtypeStruct(times.shape, np.float32), derivative="finite"
    )
    truth = np.float32([3.0, 0.4])
    measured = simulate(truth).astype(np.float32)

    @jax.jit
    def step(p):  # Gauss-Newton
        jacobian = jax.jacfwd(positions)(p)
        return p + jnp.linalg.lstsq(jacobian, measured - positions(p))[0]

    p = jnp.float32([2.0, 0.1])
    for _ in range(6):
        p = step(p)
    np.testing.assert_allclose(p, truth, rtol=1e-3)
