"""Linear callbacks under JAX's transformations, against the same functions in JAX."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from tests.capabilities.linear._chains import CHAINED, FORWARD, chained, chains

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(3, 3)) / 2, RNG.normal(size=3)
METHODS = ["sequential", "expand_dims", "broadcast_all"]


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def product(a, b):
    """Quadratic in `a`, linear in `b`."""
    return (a @ a @ b[..., None])[..., 0]


def transposed_product(a, ct):
    return np.einsum("...ji,...kj,...k->...i", a, a, ct)


@functools.cache
def matrix(flavor="pure", method="sequential"):
    """A callback that multiplies, with its transpose."""
    if flavor == "pure":
        made = jaxcb.pure(product, result="b", linear="b", vmap_method=method)
        made.deftranspose(transposed_product)
        return made

    def write(out, a, b):
        out[...] = product(a, b)

    def write_transposed(out, a, ct):
        out[...] = transposed_product(a, ct)

    made = jaxcb.buffer(write, result="b", linear="b", vmap_method=method)
    made.deftranspose(write_transposed)
    return made


def counted(**options):
    """A callback that notes which function is called: ``"solve"`` or ``"transposed"``."""
    calls = []

    def solve(a, b):
        calls.append("solve")
        return np.linalg.solve(a, b)

    def transposed(a, ct):
        calls.append("transposed")
        return np.linalg.solve(a.T, ct)

    made = jaxcb.pure(solve, result="b", linear="b", **options)
    made.deftranspose(transposed)
    return made, calls


def close(found, expected):
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10), found, expected
    )


@pytest.mark.parametrize("flavor", ["pure", "buffer"])
@pytest.mark.parametrize("name", [*CHAINED, *FORWARD])
def test_each_transformation_gives_what_jax_computes_for_the_matrix(flavor, name):
    expected = chained(product, [name])(jnp.array(A), jnp.array(B))
    close(chained(matrix(flavor), [name])(jnp.array(A), jnp.array(B)), expected)


@settings(max_examples=40)
@given(chains(3), st.sampled_from(METHODS), st.sampled_from(["pure", "buffer"]))
def test_chains_of_transformations_give_what_jax_computes_for_the_matrix(names, method, flavor):
    expected = chained(product, names)(jnp.array(A), jnp.array(B))
    close(chained(matrix(flavor, method), names)(jnp.array(A), jnp.array(B)), expected)


@pytest.mark.parametrize("method", [*METHODS, "legacy_vectorized", "sequential_unrolled"])
def test_cotangent_of_an_argument_that_vmap_does_not_map_is_summed_over_the_batch(method):
    many = RNG.normal(size=(4, 3, 3))

    def total(f, b):
        return (jax.vmap(f, (0, None))(many, b) ** 2).sum()

    callback = matrix("pure", method)
    close(jax.grad(lambda b: total(callback, b))(B), jax.grad(lambda b: total(product, b))(B))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_derivatives_call_each_function_as_often_as_they_need_it(wrap):
    solve, calls = counted()
    wrap(jax.grad(lambda b: (solve(A, b) ** 2).sum()))(B)
    assert calls == ["solve", "transposed"]
    calls.clear()
    wrap(lambda b: jax.jvp(lambda b: solve(A, b), (b,), (b,)))(B)
    assert calls == ["solve", "solve"]
    calls.clear()
    wrap(lambda b: solve(A, b))(B)
    assert calls == ["solve"]


def test_function_is_linear_in_several_arguments_jointly():
    m, n = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 2))

    def f(x, scale, y):
        return scale * (m @ x + n @ y)

    g = jaxcb.pure(f, result="y", linear=("y", "x"))
    g.deftranspose(lambda ct, scale: (scale * (n.T @ ct), scale * (m.T @ ct)))
    x, y = RNG.normal(size=3), RNG.normal(size=2)
    for argnums in (0, 2, (0, 2)):
        for derivative in (jax.jacfwd, jax.jacrev):
            close(derivative(g, argnums)(x, 2.0, y), derivative(f, argnums)(x, 2.0, y))
    close(jax.jvp(lambda x: g(x, 2.0, y), (x,), (x,))[1], 2 * m @ x)


@pytest.mark.parametrize("kind", ["symmetric", "hermitian"])
def test_self_adjoint_function_needs_no_transpose(kind):
    half = RNG.normal(size=(3, 3)) + (1j * RNG.normal(size=(3, 3)) if kind == "hermitian" else 0)
    a = half + half.conj().T
    b = B.astype(a.dtype) * (1 + 2j if kind == "hermitian" else 1)
    g = jaxcb.pure(lambda a, b: a @ b, result="b", linear="b", linear_self_adjoint=True)
    close(jax.linear_transpose(lambda b: g(a, b), b)(b)[0], a.T @ b)
    twice = jax.linear_transpose(lambda ct: jax.linear_transpose(lambda b: g(a, b), b)(ct)[0], b)
    close(twice(b)[0], a @ b)


def test_transpose_of_a_complex_function_has_no_conjugate():
    a = A + 1j * A[::-1]
    g = jaxcb.pure(lambda b: a @ b, result="b", linear="b")
    g.deftranspose(lambda ct: a.T @ ct)
    b = B + 0.5j
    loss = lambda f: lambda b: (jnp.abs(f(b)) ** 2).sum()  # noqa: E731
    close(jax.grad(loss(g))(b), jax.grad(loss(lambda b: a @ b))(b))
    close(jax.jacfwd(g, holomorphic=True)(b), a)
    close(jax.jacrev(g, holomorphic=True)(b), a)


def test_masked_calls_are_differentiated_where_their_mask_is_true():
    solve, calls = counted()
    rows = RNG.normal(size=(4, 3))
    mask = np.array([True, False, True, False])

    def total(rows):
        found = jax.vmap(lambda m, b: solve.where(m, A, b, otherwise=5.0))(mask, rows)
        return (found**2).sum()

    inverse = np.linalg.inv(A)
    expected = np.where(mask[:, None], 2 * rows @ inverse.T @ inverse, 0)
    close(jax.jit(jax.grad(total))(rows), expected)
    assert sorted(calls) == ["solve"] * 2 + ["transposed"] * 2


def test_jax_linear_solvers_take_linear_callbacks():
    spd = A @ A.T + np.eye(3)
    inverse = np.linalg.inv(spd)
    matvec = jaxcb.pure(lambda a, b: a @ b, result="b", linear="b", linear_self_adjoint=True)
    solve, _ = counted()

    def by_cg(b):
        return jax.scipy.sparse.linalg.cg(lambda x: matvec(spd, x), b, tol=1e-14)[0]

    def by_custom_linear_solve(b):
        return jax.lax.custom_linear_solve(
            lambda x: matvec(spd, x), b, lambda _, b: solve(spd, b), symmetric=True
        )

    for solved in (by_cg, by_custom_linear_solve):
        close(jax.jit(solved)(B), inverse @ B)
        close(jax.jacrev(solved)(B), inverse)
        close(jax.jacfwd(solved)(B), inverse)


@pytest.mark.parametrize("returned", [None, np.zeros(3, np.float32), (1, 2), 1j * np.ones(2)])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_wrong_result_of_a_transpose_is_an_error_that_says_what_to_return(returned, wrap):
    double = jaxcb.pure(lambda b: 2 * b, result="b", linear="b")
    double.deftranspose(lambda ct: returned)
    with pytest.raises(jax.errors.JaxRuntimeError, match="the cotangent of the result") as caught:
        jax.block_until_ready(wrap(jax.grad(lambda b: double(b).sum()))(np.ones(2, np.float32)))
    words = str(jaxcb.host_error(caught.value))
    assert "It is the transpose of" in words and "returns that of b" in words
    assert "declare" not in words
