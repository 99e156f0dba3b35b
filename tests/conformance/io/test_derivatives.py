"""Gradients do not flow through an io callback, and differentiation does not change its calls."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import FIVE_FROM_0, like_first, ordered_or_not


@ordered_or_not
@pytest.mark.parametrize(
    "differentiate",
    [
        lambda f, x: jax.grad(f)(x),
        lambda f, x: jax.jit(jax.grad(f))(x),
        lambda f, x: jax.jvp(f, (x,), (x,)),
        lambda f, x: jax.vjp(f, x),
        lambda f, x: jax.linearize(f, x),
        lambda f, x: jax.hessian(f)(x),
        lambda f, x: jax.jacfwd(f)(x),
    ],
    ids=["grad", "jit of grad", "jvp", "vjp", "linearize", "hessian", "jacfwd"],
)
def test_differentiating_through_an_io_callback_is_an_error(io, echo, differentiate, ordered):
    """The error comes before any host call."""
    host, seen = echo()
    f = io(host, like_first, ordered=ordered)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        differentiate(lambda x: f(x) * 2, np.float32(3))
    assert seen == []


@ordered_or_not
@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["grad", "jit of grad"])
@pytest.mark.parametrize("operand", ["stop_gradient", "another argument", "a constant"])
def test_operand_without_a_tangent_leaves_the_gradient_intact(
    io, run, echo, operand, compiled, ordered
):
    """The result of the callback still enters the gradient as a factor."""
    host, seen = echo()
    f = io(host, like_first, ordered=ordered)

    def loss(w, x):
        chosen = {"stop_gradient": lax.stop_gradient(w), "another argument": x}
        return w * w * f(chosen.get(operand, np.float32(5)))

    value, slope = run(compiled(jax.value_and_grad(loss)), np.float32(3), np.float32(7))
    factor = {"stop_gradient": 3, "another argument": 7, "a constant": 5}[operand]
    assert (value, slope) == (9 * factor, 6 * factor)
    assert seen == [factor]


def scan_loss(f, w):
    return lax.scan(lambda c, x: (c * w + f(x), None), w, FIVE_FROM_0)[0]


def scan_loss_unused(f, w):
    def step(c, x):
        f(x)
        return c * w + x, None

    return lax.scan(step, w, FIVE_FROM_0)[0]


def fori_loss_unused(f, w):
    def step(i, c):
        f(i.astype(jnp.float32))
        return c * w + i

    return lax.fori_loop(0, 5, step, w)


def stopped_loss_unused(f, w):
    def step(c, x):
        f(lax.stop_gradient(c * 0) + x)
        return c * w + x, None

    return lax.scan(step, w, FIVE_FROM_0)[0]


def nested_scan_loss(f, w):
    def step(c, x):
        return lax.scan(lambda d, _: (f(x) * 0 + d, None), c, None, 1)[0] * w + x, None

    return lax.scan(step, w, FIVE_FROM_0)[0]


def reference_loss(w):
    """Return the value that all the losses have, and its derivative, computed without JAX."""
    value, slope = w, 1.0
    for x in FIVE_FROM_0:
        value, slope = value * w + x, slope * w + value
    return value, slope


@pytest.mark.long
@ordered_or_not
@pytest.mark.parametrize(
    "loss",
    [scan_loss, fori_loss_unused, stopped_loss_unused, nested_scan_loss],
    ids=lambda loss: loss.__name__,
)
def test_loop_under_grad_calls_as_often_as_without(run, echo, loss, ordered):
    """JAX's io_callback is not called at all in these programs: jax-ml/jax#16637."""
    host, seen = echo()
    f = jaxcb.io(result="x", ordered=ordered)(host)
    w = np.float32(0.5)
    value, slope = reference_loss(w)

    def total(w):
        return loss(f, w)

    np.testing.assert_allclose(run(total, w), value, rtol=1e-5)
    assert seen == [0, 1, 2, 3, 4]
    for differentiated in (
        jax.value_and_grad(total),
        jax.jit(jax.value_and_grad(total)),
        lambda w: jax.jvp(total, (w,), (np.float32(1),)),
    ):
        seen.clear()
        np.testing.assert_allclose(run(differentiated, w), (value, slope), rtol=1e-5)
        assert seen == [0, 1, 2, 3, 4]


@ordered_or_not
def test_loop_under_grad_calls_as_often_even_if_only_the_slope_is_used(our_io, run, echo, ordered):
    host, seen = echo()
    f = our_io(host, like_first, ordered=ordered)
    w = np.float32(0.5)
    for gradient in (jax.grad, lambda g: jax.jit(jax.grad(g))):
        seen.clear()
        slope = run(gradient(lambda w: scan_loss_unused(f, w)), w)
        np.testing.assert_allclose(slope, reference_loss(w)[1], rtol=1e-5)
        assert seen == [0, 1, 2, 3, 4]
