"""Taps get primal values once, in the forward pass; a tap of a tangent gets its cotangent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jupyter_jaxcb import host_callback as hcb

from .conftest import batch

TRANSPOSE = ("transpose", {})


def square(seen):
    return lambda x: hcb.id_tap(seen, x) ** 2


def test_jvp_taps_only_the_primal(seen):
    assert seen.of(lambda: jax.jvp(square(seen), (3.0,), (0.5,))) == (9.0, 3.0)
    assert (seen.values, seen.transforms) == ([3.0], [()])


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_grad_and_grad_of_grad_make_one_call(seen, around):
    for order, slope in ((1, 6.0), (2, 2.0)):
        f = square(seen)
        for _ in range(order):
            f = jax.grad(f)
        assert seen.of(around(f), 3.0) == slope
        assert (seen.values, seen.transforms) == ([3.0], [()])


def test_pullback_makes_no_call(seen):
    _, pullback = jax.vjp(square(seen), 3.0)
    hcb.barrier_wait()
    assert seen.values == [3.0]
    assert [float(pullback(ct)[0]) for ct in (1.0, 2.0)] == [6.0, 12.0]
    hcb.barrier_wait()
    assert seen.values == [3.0]


def test_linearize_makes_one_call(seen):
    _, pushforward = jax.linearize(square(seen), 3.0)
    assert [float(pushforward(t)) for t in (1.0, 2.0)] == [6.0, 12.0]
    hcb.barrier_wait()
    assert seen.values == [3.0]


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_tangent_of_an_integer_is_false_on_the_host_and_is_returned_unchanged(around):
    """A compiled program represents float0, which has no values, as boolean."""
    seen = []

    @jax.custom_jvp
    def passing(pair):
        return pair

    @passing.defjvp
    def rule(primals, tangents):
        return primals[0], hcb.id_tap(lambda x, transforms: seen.append(x), tangents[0])

    x, three = jnp.float32(2), jnp.int32(3)
    tangents = (jnp.float32(1), np.zeros((), jax.dtypes.float0))
    f = around(lambda: jax.jvp(passing, ((x, three),), (tangents,)))
    for _ in range(20):  # because the memory of an empty array is arbitrary
        out, tangent = f()
        assert (out, tangent[0], tangent[1].dtype) == ((2.0, 3), 1.0, jax.dtypes.float0)
    hcb.barrier_wait()
    assert [(float(a), b.dtype, bool(b)) for a, b in seen] == [(1.0, np.bool_, False)] * 20


@pytest.mark.parametrize("derivative", [jax.jacfwd, jax.jacrev, jax.hessian])
def test_jacobians_batch_only_tangents(seen, derivative):
    f = lambda x: jnp.sum(hcb.id_tap(seen, x) ** 2)  # noqa: E731
    x = jnp.arange(3.0)
    np.testing.assert_allclose(seen.of(derivative(f), x), derivative(lambda x: jnp.sum(x**2))(x))
    assert (seen.values, seen.transforms) == ([[0, 1, 2]], [()])


@pytest.mark.parametrize(
    "both",
    [lambda f: jax.vmap(jax.grad(f)), lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum())],
    ids=["vmap of grad", "grad of vmap"],
)
def test_vmap_and_grad_make_one_batched_call(seen, both):
    assert seen.of(both(square(seen)), jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert (seen.values, seen.transforms) == ([[0, 1, 2]], [(batch(0),)])


def test_integers_are_tapped_under_grad(seen):
    def f(x, n):
        x, n = hcb.id_tap(seen, (x, n))
        return x**2 * n

    assert seen.of(jax.grad(f), 3.0, 4) == 24.0
    assert seen.values == [(3.0, 4)]
    assert seen.of(jax.grad(f, allow_int=True, argnums=1), 3.0, 4).dtype == jax.dtypes.float0


def tangent_tapped(seen):
    @jax.custom_jvp
    def double(x):
        return 2 * x

    @double.defjvp
    def rule(primals, tangents):
        return double(*primals), 2 * hcb.id_tap(seen, tangents[0])

    return double


def test_tap_on_a_tangent_sees_it_under_jvp(seen):
    seen.of(lambda: jax.jvp(tangent_tapped(seen), (3.0,), (0.5,)))
    assert (seen.values, seen.transforms) == ([0.5], [()])


def test_tap_on_a_tangent_sees_the_cotangent_under_grad(seen):
    f = tangent_tapped(seen)
    assert seen.of(jax.grad(lambda x: 5 * f(x)), 3.0) == 10.0
    assert (seen.values, seen.transforms) == ([10.0], [(TRANSPOSE,)])


def test_vmap_of_grad_reports_transpose_before_batch(seen):
    f = tangent_tapped(seen)
    seen.of(jax.vmap(jax.grad(lambda x: f(x) ** 2 / 2)), jnp.arange(3.0))
    assert (seen.values, seen.transforms) == ([[0, 4, 8]], [(TRANSPOSE, batch(0))])


def test_tap_in_a_backward_rule_sees_the_cotangent_without_transforms(seen):
    @jax.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * hcb.id_tap(seen, ct),))
    assert seen.of(jax.grad(lambda x: 5 * double(x)), 3.0) == 10.0
    assert (seen.values, seen.transforms) == ([5.0], [()])


def test_linear_transpose_taps_the_cotangent(seen):
    f = lambda x: 2 * hcb.id_tap(seen, x)  # noqa: E731
    once = lambda ct: jax.linear_transpose(f, 1.0)(ct)[0]  # noqa: E731
    assert seen.of(once, 5.0) == 10.0
    assert (seen.values, seen.transforms) == ([10.0], [(TRANSPOSE,)])
    twice = lambda x: jax.linear_transpose(once, 1.0)(x)[0]  # noqa: E731
    assert seen.of(twice, 5.0) == 10.0
    assert (seen.values, seen.transforms) == ([5.0], [(TRANSPOSE, TRANSPOSE)])


def test_symbolic_zero_cotangent_is_tapped_as_zeros(seen):
    """Only the first tapped value is used, so the cotangent of the second is a symbolic zero."""

    def f(x, y):
        return 3 * hcb.id_tap(seen, (x, y))[0]

    back = seen.of(lambda: jax.linear_transpose(f, 1.0, jnp.ones(2))(1.0))
    assert jax.tree.map(lambda x: np.asarray(x).tolist(), back) == (3.0, [0, 0])
    assert (seen.values, seen.transforms) == ([(3.0, [0, 0])], [(TRANSPOSE,)])


def test_cotangent_of_a_constant_is_tapped_as_zero(seen):
    f = lambda x: hcb.id_tap(seen, (x, 7))[0] * 2  # noqa: E731
    assert seen.of(lambda: jax.linear_transpose(f, 1.0)(1.0)) == (2.0,)
    assert (seen.values, seen.transforms) == ([(2.0, 0)], [(TRANSPOSE,)])


def test_tap_of_a_tangent_and_its_primal_gets_zero_for_the_primal(seen):
    """The function is not linear in the primal, which therefore has no cotangent."""

    @jax.custom_jvp
    def double(x):
        return 2 * x

    @double.defjvp
    def rule(primals, tangents):
        return double(*primals), 2 * hcb.id_tap(seen, (primals[0], tangents[0]))[1]

    assert seen.of(jax.grad(double), 3.0) == 2.0
    assert (seen.values, seen.transforms) == ([(0.0, 2.0)], [(TRANSPOSE,)])
    assert seen.of(jax.jit(jax.grad(lambda x: double(x) * x)), 3.0) == 12.0


def test_odeint_is_differentiated_through_taps(seen):
    from jax.experimental.ode import odeint

    def end(rate):
        f = lambda y, t: -hcb.id_tap(seen, rate) * y  # noqa: E731
        return odeint(f, 1.0, jnp.array([0.0, 1.0]))[-1]

    slope = seen.of(jax.jit(jax.grad(end)), 0.5)
    np.testing.assert_allclose(slope, -np.exp(-0.5), rtol=1e-3)
    assert set(seen.values) == {0.5}


def test_linear_transpose_of_vmap_reports_batch_before_transpose():
    seen = []
    f = jax.vmap(lambda x: 2 * hcb.id_tap(lambda x, transforms: seen.append(transforms), x))
    jax.linear_transpose(f, jnp.ones(3))(jnp.ones(3))
    hcb.barrier_wait()
    assert seen == [(("batch", {"batch_dims": (0,)}), ("transpose", {}))]
