"""``gradient=``: functions that return value and gradient in one host call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

THETA = np.float32([0.5, 1.0, 2.0])


def counted(**options):
    calls = []

    def simulate(theta):
        calls.append(np.shape(theta))
        return np.sin(theta).sum(-1), np.cos(theta)

    return jaxcb.pure(simulate, result="theta.shape[:0]", gradient="theta", **options), calls


def expected(theta):
    return jnp.sin(theta).sum()


def close(found, wanted):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), found, wanted)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad,
        jax.value_and_grad,
        jax.jacrev,
        lambda f: f,
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        lambda f: lambda x: jax.linearize(f, x)[1](x),
    ],
    ids=["grad", "value_and_grad", "jacrev", "none", "jvp", "linearize"],
)
def test_value_and_its_derivative_take_one_host_call(wrap, derivative):
    simulate, calls = counted()
    close(wrap(derivative(simulate))(THETA), derivative(expected)(THETA))
    assert calls == [(3,)]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_gradients_of_a_batch_are_those_of_its_elements(method):
    simulate, calls = counted(vmap_method=method)
    rows = np.stack([THETA, 2 * THETA])
    close(jax.jit(jax.vmap(jax.value_and_grad(simulate)))(rows), (
        jnp.sin(rows).sum(-1), jnp.cos(rows),
    ))  # fmt: skip
    close(jax.grad(lambda rows: jax.vmap(simulate)(rows).sum())(rows), jnp.cos(rows))
    assert len(calls) == (4 if method == "sequential" else 2)


def test_gradient_in_loops_is_that_of_each_step():
    simulate, calls = counted()

    def total(f, theta):
        return jax.lax.scan(lambda c, k: (c + f(k * theta), None), 0.0, jnp.arange(1.0, 4.0))[0]

    found = jax.jit(jax.grad(lambda theta: total(simulate, theta)))(THETA)
    close(found, jax.grad(lambda theta: total(expected, theta))(THETA))
    assert len(calls) == 3


def test_several_results_and_parameters_have_the_jacobian_of_jax():
    def f(a, n, *, b):
        y = {"s": a["x"] * b, "n": n}
        jacobian = {"s": ({"x": np.diag(np.broadcast_to(b, 3))}, np.asarray(a["x"])), "n": None}
        return y, jacobian

    g = jaxcb.pure(f, result="{'s': a['x'], 'n': n}", gradient=("a", "b"))

    def of_both(f, x, b):
        return f({"x": x}, 2, b=b)["s"]

    b = np.float32(3)
    for derivative in (jax.jacfwd, jax.jacrev):
        found = derivative(lambda x, b: of_both(g, x, b), (0, 1))(THETA, b)
        close(found, derivative(lambda x, b: x * b, (0, 1))(THETA, b))


def test_masked_calls_have_a_gradient_where_their_mask_is_true():
    simulate, calls = counted()
    rows, mask = np.stack([THETA, 2 * THETA]), np.array([False, True])
    found = jax.jit(
        jax.grad(
            lambda rows: jax.vmap(lambda m, x: simulate.where(m, x, otherwise=0))(mask, rows).sum()
        )
    )(rows)
    close(found, jnp.where(mask[:, None], jnp.cos(rows), 0))
    assert calls == [(3,)]


def test_second_derivative_is_refused_with_two_ways_out():
    simulate, _ = counted()
    words = r"cannot differentiate simulate twice.*derivative='finite'.*@simulate\.defjvp"
    with pytest.raises(TypeError, match=words):
        jax.hessian(simulate)(THETA)


MATRIX = np.random.default_rng(0).normal(size=(3, 3))


def wave(theta):
    """Return a value whose Hessian is full, and its gradient."""
    return np.sin(MATRIX @ theta).sum(), MATRIX.T @ np.cos(MATRIX @ theta)


def hessian_of_wave(theta):
    return -MATRIX.T @ np.diag(np.sin(MATRIX @ theta)) @ MATRIX


def of_differences(function=wave, **options):
    given = {"result": "theta.shape[:0]", "gradient": "theta", "derivative": "finite", **options}
    return jaxcb.pure(function, **given)


HESSIANS = {
    "hessian": jax.hessian,
    "jit of hessian": lambda f: jax.jit(jax.hessian(f)),
    "reverse twice": lambda f: jax.jacrev(jax.jacrev(f)),
    "forward twice": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "vmap of hessian": lambda f: lambda x: jax.vmap(jax.hessian(f))(x[None])[0],
    "hessian in a scan": lambda f: (
        lambda x: jax.lax.scan(lambda c, _: (c, jax.hessian(f)(c)), x, length=1)[1][0]
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("second", HESSIANS.values(), ids=HESSIANS)
def test_second_derivative_is_that_of_differences_of_the_gradient(second, dtype):
    with jax.enable_x64(dtype is np.float64):
        theta = THETA.astype(dtype)
        wave = of_differences(result="theta[0]")
        found = np.asarray(second(wave)(jnp.asarray(theta)))
    expected = hessian_of_wave(theta)
    assert found.dtype == dtype
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error < 4 * np.finfo(dtype).eps ** (2 / 3)


def of_product(f, theta):
    return jax.jvp(jax.grad(f), (theta,), (jnp.ones_like(theta),))[1]


@pytest.mark.parametrize("executor", [None, "threads:2"])
@pytest.mark.parametrize("second", [jax.hessian, lambda f: lambda x: of_product(f, x)])
def test_first_derivative_takes_one_host_call_and_the_second_two_for_each_element(second, executor):
    dtypes = []

    def counting(theta):
        dtypes.append(theta.dtype.name)
        return wave(theta)

    f = of_differences(counting, executor=executor)
    jax.block_until_ready(jax.grad(f)(THETA))
    assert dtypes == ["float32"]
    jax.block_until_ready(jax.jit(second(f))(THETA))
    assert dtypes[1:] == ["float64"] * 2 * THETA.size


@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
@pytest.mark.parametrize("inner", [jax.grad, jax.jacfwd], ids=["reverse", "forward"])
@pytest.mark.parametrize("outer", [jax.jvp, jax.vjp], ids=["jvp", "vjp"])
def test_hessian_vector_products_of_a_batch_are_those_of_the_analytic_hessians(
    outer, inner, method
):
    def of_batch(theta):
        u = theta @ MATRIX.T
        return np.sin(u).sum(-1), np.cos(u) @ MATRIX

    f = of_differences(of_batch, result="theta.shape[:0]", vmap_method=method)

    def product(theta, v):
        if outer is jax.jvp:
            return jax.jvp(inner(f), (theta,), (v,))[1]
        return jax.vjp(inner(f), theta)[1](v)[0]

    rows, vectors = np.stack([THETA, -THETA, THETA**2]), np.eye(3, dtype=np.float32) - 0.5
    found = jax.jit(jax.vmap(product))(rows, vectors)
    expected = np.stack([hessian_of_wave(x) @ v for x, v in zip(rows, vectors, strict=True)])
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


SECOND_IN_A_LOOP = {
    "hessian": jax.hessian,
    "reverse twice": lambda f: jax.jacrev(jax.jacrev(f)),
    "product": lambda f: lambda x: of_product(f, x),
}


@pytest.mark.parametrize("second", SECOND_IN_A_LOOP.values(), ids=SECOND_IN_A_LOOP)
def test_second_derivative_of_a_loop_is_right_in_reverse_mode(second):
    def total(f):
        return lambda x: jax.lax.scan(
            lambda c, k: (c + f(k * x), None), 0.0, jnp.float32([1, 0.5])
        )[0]

    def wave_in_jax(theta):
        return jnp.sin(jnp.float32(MATRIX) @ theta).sum()

    found = jax.jit(second(total(of_differences())))(THETA)
    expected = second(total(wave_in_jax))(THETA)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-3)


def test_second_derivative_of_several_results_and_parameters_is_that_of_jax():
    def f(a, n, *, b):
        y = {"s": a["x"] ** 2 * b**2, "n": n}
        by_a, by_b = {"x": np.diag(2 * a["x"] * b**2)}, 2 * a["x"] ** 2 * b
        return y, {"s": (by_a, by_b), "n": None}

    g = jaxcb.pure(f, result="{'s': a['x'], 'n': n}", gradient=("a", "b"), derivative="finite")

    def loss(f, x, b):
        return f({"x": x}, 2, b=b)["s"].sum()

    b = np.float32(3)
    found = jax.hessian(lambda x, b: loss(g, x, b), (0, 1))(THETA, b)
    expected = jax.hessian(lambda x, b: (x**2 * b**2).sum(), (0, 1))(THETA, b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-3), found, expected)


def test_second_derivative_of_masked_calls_is_zero_where_their_mask_is_false():
    seen = []

    def root(x):
        seen.append(float(x))
        return np.sqrt(x), 0.5 / np.sqrt(x)

    f = jaxcb.pure(root, result="x", gradient="x", derivative="finite")
    x = jnp.array([4.0, -1.0, 9.0])
    second = jax.grad(jax.grad(lambda x: f.where(x > 0, x, otherwise=0.0)))
    found = jax.jit(jax.vmap(second))(x)
    np.testing.assert_allclose(found, [-1 / 32, 0, -1 / 108], rtol=1e-3)
    assert min(seen) > 0


def test_value_in_a_second_derivative_has_the_gradient_that_was_returned():
    """A wrong gradient shows that no differences of the value are taken."""
    f = jaxcb.pure(lambda x: (x**2, 7.0), result="x", gradient="x", derivative="finite")
    _, moved = jax.jvp(lambda x: jax.jvp(f, (x,), (1.0,)), (3.0,), (1.0,))
    assert moved == (7.0, 0.0)


def test_third_derivative_is_refused():
    words = r"cannot differentiate wave three times: second derivatives are differences"
    with pytest.raises(TypeError, match=words):
        jax.jacfwd(jax.hessian(of_differences()))(THETA)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gradient": "b"}, "it has no parameter 'b'"),
        ({"gradient": ("a", "a")}, "each once, as in gradient='theta' or"),
        ({"gradient": "a b"}, "name the parameters by which the function returns its gradient"),
        ({"gradient": "a", "result": "infer"}, "it would infer both"),
    ],
)
def test_gradient_that_cannot_be_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        jaxcb.pure(lambda a: (a, a), **{"result": "a", **options})


def test_gradient_of_another_shape_is_an_error_that_names_it():
    g = jaxcb.pure(lambda a: (a.sum(), a[:2]), result="a.shape[:0]", gradient="a")
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"\(2,\), .* and then those of a\."):
        g(THETA)
