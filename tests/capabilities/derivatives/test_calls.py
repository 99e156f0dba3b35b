"""A derivative calls the host function exactly as often as its rule does."""

import collections

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.float32(0.7)
XS = np.float32([0.1, 0.2, 0.3, 0.4])
ONE, ONES = np.float32(1), np.ones(4, np.float32)


@pytest.fixture
def calls():
    return collections.Counter()


def counting(calls, function):
    def host(x):
        calls.update([function.__name__])
        return function(x)

    return jaxcb.pure(host, result="x")


@pytest.fixture
def sin(calls):
    """Return a sine whose rule calls a cosine, whose rule calls the sine."""
    sin, cos = counting(calls, np.sin), counting(calls, np.cos)
    sin.defjvp(lambda p, t: (sin(*p), cos(*p) * t[0]))
    cos.defjvp(lambda p, t: (cos(*p), -sin(*p) * t[0]))
    return sin


@pytest.fixture
def sin_in_reverse(calls):
    sin, cos = counting(calls, np.sin), counting(calls, np.cos)
    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (cos(x) * ct,))
    return sin


def loop(f, x):
    return jax.lax.fori_loop(0, 5, lambda i, c: f(c), x)


def scanned(f, x):
    return jax.lax.scan(lambda c, _: (f(c), None), x, length=5)[0]


FORWARD = {
    "value": (lambda f: f(X), {"sin": 1}),
    "jvp": (lambda f: jax.jvp(f, (X,), (ONE,)), {"sin": 1, "cos": 1}),
    "jvp of a vector": (lambda f: jax.jvp(f, (XS,), (ONES,)), {"sin": 1, "cos": 1}),
    "tangent alone": (lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (ONE,))[1])(X), {"cos": 1}),
    "jacfwd of a vector": (lambda f: jax.jit(jax.jacfwd(f))(XS), {"cos": 1}),
    "jacrev of a vector": (lambda f: jax.jit(jax.jacrev(f))(XS), {"cos": 1}),
    "linearize, applied thrice": (
        lambda f: list(map(jax.linearize(f, X)[1], [ONE, X, X])),
        {"sin": 1, "cos": 1},
    ),
    "value_and_grad": (lambda f: jax.jit(jax.value_and_grad(f))(X), {"sin": 1, "cos": 1}),
    "grad": (lambda f: jax.jit(jax.grad(f))(X), {"cos": 1}),
    "vmap of grad": (lambda f: jax.jit(jax.vmap(jax.grad(f)))(XS), {"cos": 4}),
    "vmap of a jvp along many tangents": (
        lambda f: jax.jit(jax.vmap(lambda t: jax.jvp(f, (X,), (t,))[1]))(XS),
        {"cos": 1},
    ),
    "second derivative": (lambda f: jax.jit(jax.grad(jax.grad(f)))(X), {"sin": 1}),
    "jvp of a loop": (lambda f: jax.jvp(lambda x: loop(f, x), (X,), (ONE,)), {"sin": 5, "cos": 5}),
    "grad of a scan": (
        lambda f: jax.jit(jax.value_and_grad(lambda x: scanned(f, x)))(X),
        {"sin": 5, "cos": 5},
    ),
    "constant argument": (lambda f: jax.jvp(lambda x: f(X) * x, (ONE,), (ONE,)), {"sin": 1}),
}
REVERSE = {
    "value": FORWARD["value"],
    "value_and_grad": (lambda f: jax.value_and_grad(f)(X), {"sin": 1, "cos": 1}),
    "grad": FORWARD["grad"],
    "vjp, applied twice": (lambda f: list(map(jax.vjp(f, X)[1], [ONE, X])), {"sin": 1, "cos": 2}),
    "jacrev of a vector": FORWARD["jacrev of a vector"],
    "vmap of value_and_grad": (
        lambda f: jax.jit(jax.vmap(jax.value_and_grad(f)))(XS),
        {"sin": 4, "cos": 4},
    ),
    "grad of a scan": FORWARD["grad of a scan"],
}


@pytest.mark.parametrize("name", FORWARD)
def test_derivative_makes_the_calls_of_its_forward_rule(sin, calls, name):
    program, expected = FORWARD[name]
    jax.block_until_ready(program(sin))
    assert calls == expected


@pytest.mark.parametrize("name", REVERSE)
def test_derivative_makes_the_calls_of_its_reverse_rule(sin_in_reverse, calls, name):
    program, expected = REVERSE[name]
    jax.block_until_ready(program(sin_in_reverse))
    assert calls == expected


def test_batched_derivative_needs_one_crossing_per_callback(sin):
    with jaxcb.record() as r:
        slopes = jax.jit(jax.vmap(jax.value_and_grad(sin)))(XS)
    np.testing.assert_allclose(slopes, (np.sin(XS), np.cos(XS)), rtol=1e-6)
    assert len(r.recording) == 8
    assert len({call.crossing for call in r.recording}) == 2


@pytest.mark.parametrize(
    "given",
    [
        {"host": np.sin, "options": {"derivative": "finite"}},
        {"host": lambda x: (np.sin(x), np.cos(x)), "options": {"gradient": "x"}},
    ],
    ids=["finite", "gradient"],
)
def test_derivative_of_a_checkpoint_calls_from_the_line_of_the_call(given):
    """JAX differentiates a checkpoint after the function that makes the call has returned."""
    f = jaxcb.pure(lambda x: given["host"](x), result="x", **given["options"])

    def model(x):
        return 2 * f(x)

    matrix = jaxcb.explain_matrix(model)(1.0)
    sites = {one.site for column in matrix.columns.values() for one in column.outcomes}
    assert {site.line for site in sites} == {model.__code__.co_firstlineno + 1}
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(jax.grad(jax.checkpoint(model)))(1.0))
    (called,) = {r.recording.lowered[call.lowered].site.line for call in r.recording}
    assert called == model.__code__.co_firstlineno + 1
