"""Derivatives of linear callbacks by their other arguments: by a residual, or by a rule."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from tests.capabilities.linear._chains import CHAINED, FORWARD, chained, chains
from tests.capabilities.linear.test_rules import METHODS, close, counted

RNG = np.random.default_rng(1)
A, B = np.eye(3) + RNG.normal(size=(3, 3)) / 5, RNG.normal(size=3)


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def solved(xp, a, b):
    return xp.linalg.solve(a, b[..., None])[..., 0]


def host_solve(a, b):
    return solved(np, a, b)


def host_transposed(a, ct):
    return solved(np, np.swapaxes(a, -1, -2), ct)


def write_solve(out, a, b):
    out[...] = host_solve(a, b)


def write_transposed(out, a, ct):
    out[...] = host_transposed(a, ct)


@functools.cache
def solver(by, method="sequential", flavor="pure"):
    """A callback that solves a system, with its derivative by the matrix."""
    functions = (host_solve, host_transposed)
    if flavor == "buffer":
        functions = (write_solve, write_transposed)
    solve = getattr(jaxcb, flavor)(functions[0], result="b", linear="b", vmap_method=method)
    solve.deftranspose(functions[1])
    if by == "residual":
        solve.defresidual(lambda a, x, b: a @ x - b)
    else:

        @solve.defjvp
        def solve_jvp(primals, tangents):
            (a, b), (da, db) = primals, tangents
            x = solve(a, b)
            return x, solve(a, db - da @ x)

    return solve


def moving(f):
    """Return `f` with a matrix that depends on both arguments."""
    return lambda a, b: f(a + jnp.outer(jnp.sin(b), b) / 9, b)


REFERENCE = moving(functools.partial(solved, jnp))


@pytest.mark.parametrize("by", ["residual", "rule"])
@pytest.mark.parametrize("name", [*CHAINED, *FORWARD])
def test_each_transformation_gives_what_jax_computes_by_all_arguments(by, name):
    expected = chained(REFERENCE, [name])(jnp.array(A), jnp.array(B))
    close(chained(moving(solver(by)), [name])(jnp.array(A), jnp.array(B)), expected)


@settings(max_examples=40)
@given(
    chains(3),
    st.sampled_from(METHODS),
    st.sampled_from(["pure", "buffer"]),
    st.sampled_from(["residual", "rule"]),
)
def test_chains_of_transformations_give_what_jax_computes_by_all_arguments(
    names, method, flavor, by
):
    expected = chained(REFERENCE, names)(jnp.array(A), jnp.array(B))
    found = chained(moving(solver(by, method, flavor)), names)(jnp.array(A), jnp.array(B))
    close(found, expected)


@pytest.mark.parametrize("method", METHODS)
def test_solver_in_a_branch_is_differentiated_without_the_zeros_of_elements_that_skip_it(method):
    def loss(f, a, b):
        return jax.lax.cond(b[0] > 0, lambda: (f(a, b) ** 2).sum(), lambda: b.sum())

    a = jnp.stack([A, A.T, A + 1])
    b = jnp.stack([jnp.abs(B), -jnp.abs(B), 2 * jnp.abs(B)])
    expected = jax.vmap(jax.grad(functools.partial(loss, REFERENCE), (0, 1)))(a, b)
    found = jax.vmap(jax.grad(functools.partial(loss, moving(solver("residual", method))), (0, 1)))
    close(jax.jit(found)(a, b), expected)


def test_gradient_by_all_arguments_takes_one_call_of_the_transpose():
    solve, calls = counted()
    solve.defresidual(lambda a, x, b: a @ x - b)
    jax.jit(jax.grad(lambda a, b: (solve(a, b) ** 2).sum(), (0, 1)))(A, B)
    assert calls == ["solve", "transposed"]
    calls.clear()
    jax.jit(lambda a, b: jax.jvp(solve, (a, b), (a, b)))(A, B)
    assert calls == ["solve", "solve"]


def test_solver_with_pytrees_integers_and_keywords_is_differentiated_by_its_residual():
    def solve(values, b, steps=7):
        return {"x": b["p"] / values[0] / values[1]}, np.int64(steps)

    def residual(values, result, b, steps=7):
        return {"p": values[0] * values[1] * result[0]["x"] - b["p"]}

    g = jaxcb.pure(solve, result="({'x': b['p']}, int)", linear="b")
    g.deftranspose(lambda values, ct, steps=7: {"p": ct[0]["x"] / values[0] / values[1]})
    g.defresidual(residual)
    values = (B + 3, jnp.cos(B) + 2)

    def total(f, values, p):
        return jnp.sin(f(values, {"p": p}, steps=3)[0]["x"]).sum()

    def expected(values, b, steps):
        return {"x": b["p"] / values[0] / values[1]}, steps

    for derivative in (jax.grad, jax.hessian):
        found = derivative(functools.partial(total, g), (0, 1))(values, B)
        close(found, derivative(functools.partial(total, expected), (0, 1))(values, B))


def test_rule_gets_the_default_of_an_argument_that_is_not_passed_in_second_derivatives():
    def product(a, b, scale=2.0):
        return scale * (a * a * b)

    g = jaxcb.pure(product, result="b", linear="b")
    g.deftranspose(product)

    @g.defjvp
    def rule(primals, tangents):
        (a, b, scale), (da, db, _) = primals, tangents
        return g(a, b, scale), g(a, db, scale) + 2 * scale * a * da * b

    def total(f):
        return lambda a: jax.lax.scan(lambda c, k: (c + f(k * a, B).sum(), None), 0.0, B)[0]

    for second in (jax.hessian, lambda f: jax.jacrev(jax.jacrev(f))):
        close(second(total(g))(B), second(total(product))(B))


@pytest.mark.parametrize("by", ["residual", "rule"])
@pytest.mark.parametrize("method", METHODS)
def test_masked_calls_have_no_derivative_elsewhere_even_of_matrices_without_an_inverse(by, method):
    solve = solver(by, method)
    many, mask = np.stack([A, 0 * A, A.T]), jnp.array([True, False, True])

    def total(many, f):
        return (f(many) ** 2).sum()

    def masked(many):
        return jax.vmap(lambda m, a: solve.where(m, a, B, otherwise=0.0))(mask, many)

    def expected(many):
        return jnp.stack([solved(jnp, many[0], B), 0 * B, solved(jnp, many[2], B)])

    for derivative in (jax.grad, lambda f: jax.grad(lambda a: jax.grad(f)(a).sum())):
        found = jax.jit(derivative(functools.partial(total, f=masked)))(many)
        close(found, derivative(functools.partial(total, f=expected))(many))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda a, x, b: (a @ x - b)[:2], r"float64\[2\]"),
        (lambda a, x, b: (a @ x - b,), r"\('float64\[3\]',\)"),
        (lambda a, x, b: None, "None"),
        (lambda a, x, b: "r", "'r'"),
    ],
)
def test_residual_unlike_the_linear_argument_is_refused_with_both(returned, words):
    solve = jaxcb.pure(host_solve, result="b", linear="b")
    solve.defresidual(returned)
    with pytest.raises(TypeError, match=rf"its residual is {words}, expected float64\[3\] like"):
        jax.jvp(lambda a: solve(a, B), (A,), (A,))
