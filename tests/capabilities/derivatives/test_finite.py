"""``derivative="finite"``: accuracy, perturbed elements, number of crossings, special arguments."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb

# Smooth functions in numpy and jnp, and the interval to differentiate them on.
SMOOTH = {
    "sin": (np.sin, jnp.sin, -3, 3),
    "exp": (np.exp, jnp.exp, -3, 3),
    "log": (np.log, jnp.log, 0.125, 30),
    "square root": (np.sqrt, jnp.sqrt, 0.125, 100),
    "reciprocal": (lambda x: 1 / x, lambda x: 1 / x, 0.125, 10),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), jax.nn.sigmoid, -4, 4),
    "arctan": (np.arctan, jnp.arctan, -5, 5),
    "polynomial": (lambda x: x**3 - 2 * x, lambda x: x**3 - 2 * x, -4, 4),
}


@st.composite
def smooth(draw):
    """Draw a function on the host, the same function in JAX, and where to differentiate it."""
    host, plain, low, high = draw(st.sampled_from(list(SMOOTH.values())))
    x = draw(st.lists(st.floats(low, high, width=32), min_size=1, max_size=4))
    return host, plain, np.float32(x)


@pytest.mark.long
@settings(max_examples=30)
@given(smooth(), st.floats(-2, 2, width=32))
def test_both_modes_agree_with_the_analytic_derivative(drawn, factor):
    host, plain, x = drawn
    f = jaxcb.pure(host, result=lambda x: x, derivative="finite")
    expected = jax.vmap(jax.grad(plain))(x)
    close = {"rtol": 1e-3, "atol": 1e-3 * max(1, float(np.abs(expected).max()))}
    _, forward = jax.jvp(f, (x,), (np.full_like(x, factor),))
    np.testing.assert_allclose(forward, factor * expected, **close)
    _, reverse = jax.vjp(f, x)
    np.testing.assert_allclose(reverse(np.full_like(x, factor))[0], factor * expected, **close)


@settings(max_examples=30)
@given(smooth())
def test_derivative_of_a_scalar_is_accurate_to_a_thousandth(drawn):
    """The step of a single element has the scale of that element."""
    host, plain, (x, *_) = drawn
    f = jaxcb.pure(host, result=lambda x: x, derivative="finite")
    np.testing.assert_allclose(jax.grad(f)(x), jax.grad(plain)(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(np.float64, 1e-9), (np.float32, 1e-4), (np.float16, 1e-2), (ml_dtypes.bfloat16, 3e-2)],
    ids=["float64", "float32", "float16", "bfloat16"],
)
def test_step_and_accuracy_follow_the_dtype(dtype, tolerance):
    seen = []

    def host(x):
        seen.append((x.dtype, float(x)))
        return np.sin(x)

    with jax.enable_x64(dtype is np.float64):
        f = jaxcb.pure(host, result=lambda x: x, derivative="finite")
        slope = jax.jit(jax.grad(f))(jnp.asarray(0.5, dtype))
    assert slope.dtype == dtype
    np.testing.assert_allclose(np.float64(slope), np.cos(0.5), rtol=tolerance)
    assert [dtype for dtype, _ in seen] == [np.float64, np.float64]
    step = 0.5 * float(jnp.finfo(dtype).eps) ** (1 / 3)
    np.testing.assert_allclose(sorted(x for _, x in seen), [0.5 - step, 0.5 + step])


PROGRAMS = {
    "grad": jax.grad,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "jacfwd": lambda f: jax.jit(jax.jacfwd(f)),
    "jacrev": lambda f: jax.jit(jax.jacrev(f)),
    "vmap of grad": lambda f: lambda x: jax.jit(jax.vmap(jax.grad(f)))(jnp.stack([x] * 6)),
    "vmap of vmap of grad": lambda f: (
        lambda x: jax.jit(jax.vmap(jax.vmap(jax.grad(f))))(jnp.broadcast_to(x, (3, 2, 3)))
    ),
    "grad of vmap": lambda f: (
        lambda x: jax.grad(lambda xs: jax.vmap(f)(xs).sum())(jnp.stack([x] * 6))
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_elements_and_perturbations_need_one_crossing(name):
    runs = []

    def host(x):
        runs.append(x.dtype)
        return np.sin(x).sum()

    f = jaxcb.pure(host, result=lambda x: jax.ShapeDtypeStruct((), np.float32), derivative="finite")
    x = jnp.float32([0.3, -0.4, 0.5])
    with jaxcb.record() as r:
        slope = jax.block_until_ready(PROGRAMS[name](f)(x))
    np.testing.assert_allclose(slope, np.broadcast_to(np.cos(x), slope.shape), rtol=1e-3)
    elements = slope.size // 3
    crossed = {
        call.crossing
        for call in r.recording
        if "finite" in r.recording.lowered[call.lowered].site.function
    }
    assert len(crossed) == 1
    assert runs.count(np.float64) == 2 * 3 * elements


def test_gradient_of_a_scan_needs_at_most_two_crossings_per_step():
    square = jaxcb.pure(lambda x: x**2 / 2, result=lambda x: x, derivative="finite")

    def run(f, x):
        return jax.lax.scan(lambda c, _: (f(c) + 0.1 * c, c), x, length=5)[0]

    with jaxcb.record() as r:
        found = jax.jit(jax.grad(lambda x: run(square, x)))(jnp.float32(0.9))
    np.testing.assert_allclose(
        found, jax.grad(lambda x: run(lambda c: c**2 / 2, x))(jnp.float32(0.9)), rtol=1e-3
    )
    assert len({call.crossing for call in r.recording}) <= 10


class Oscillator:
    """A host object with a method; hashable, and not an array."""

    frequency = 3.0

    @jaxcb.pure(result="t", derivative="finite")
    def position(self, t):
        return np.sin(self.frequency * t)


def test_method_is_differentiated_with_respect_to_its_array():
    slope = jax.vmap(jax.grad(Oscillator().position))(jnp.arange(3.0))
    np.testing.assert_allclose(slope, 3 * np.cos(3 * np.arange(3)), rtol=1e-3)


def test_integer_arguments_have_no_derivative_and_are_not_perturbed():
    seen = set()

    def host(x, n):
        seen.add((n.dtype.name, int(n)))
        return x**n

    f = jaxcb.pure(host, result="x", derivative="finite")
    by_x, by_n = jax.jit(jax.grad(f, (0, 1), allow_int=True))(2.0, 3)
    np.testing.assert_allclose(by_x, 12, rtol=1e-4)
    assert by_n.dtype == jax.dtypes.float0
    assert seen == {("int32", 3)}


@pytest.mark.parametrize("x", [1e-38, 1e-12, -1e-9, 1e-5])
def test_derivative_at_a_tiny_argument_is_accurate(x):
    """A step of the argument's scale would not change the result; no step changes its sign."""
    seen = []

    def host(x):
        seen.append(float(x))
        return np.exp(np.float32(x))

    f = jaxcb.pure(host, result=lambda x: x, derivative="finite")
    np.testing.assert_allclose(jax.grad(f)(np.float32(x)), 1, rtol=1e-3)
    assert len({np.sign(x) for x in seen}) == 1
