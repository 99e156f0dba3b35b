"""Callbacks inside custom derivative rules give the right values, with as many calls as JAX."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import SCALAR, like_first, ordered_or_not

X, DX = np.float32(0.7), np.float32(2)


def noting(calls, name, function):
    def host(*args):
        calls.append(name)
        return np.float32(function(*(np.asarray(arg) for arg in args)))

    return host


def with_custom_jvp(make):
    """Return ``sin`` with a custom_jvp rule; primal and derivative run on the host."""
    calls = []
    host_sin = make(noting(calls, "sin", np.sin), SCALAR, vmap_method="sequential")
    host_cos = make(noting(calls, "cos", np.cos), SCALAR, vmap_method="sequential")
    sin = jax.custom_jvp(lambda x: host_sin(x))
    cos = jax.custom_jvp(lambda x: host_cos(x))
    sin.defjvp(lambda primals, tangents: (sin(*primals), cos(*primals) * tangents[0]))
    cos.defjvp(lambda primals, tangents: (cos(*primals), -sin(*primals) * tangents[0]))
    return sin, calls


def with_custom_vjp(make):
    """Return ``sin`` with custom_vjp rules; primal, forward and backward run on the host."""
    calls = []
    primal = make(noting(calls, "primal", np.sin), SCALAR)
    forward = make(noting(calls, "forward", np.sin), SCALAR)
    backward = make(noting(calls, "backward", lambda x, ct: np.cos(x) * ct), SCALAR, "sequential")
    sin = jax.custom_vjp(lambda x: primal(x))
    sin.defvjp(lambda x: (forward(x), x), lambda x, ct: (backward(x, ct),))
    return sin, calls


FORWARD = {
    "value": (lambda f: f(X), np.sin(X)),
    "jvp": (lambda f: jax.jvp(f, (X,), (DX,)), (np.sin(X), np.cos(X) * DX)),
    "vjp": (lambda f: jax.vjp(f, X)[1](DX), (np.cos(X) * DX,)),
    "vjp, applied twice": (
        lambda f: list(map(jax.vjp(f, X)[1], (X, DX))),
        [(np.cos(X) * X,), (np.cos(X) * DX,)],
    ),
    "linearize": (
        lambda f: [jax.linearize(f, X)[0], *map(jax.linearize(f, X)[1], (X, DX))],
        [np.sin(X), np.cos(X) * X, np.cos(X) * DX],
    ),
    "linear_transpose": (
        lambda f: jax.linear_transpose(lambda t: jax.jvp(f, (X,), (t,))[1], X)(DX),
        (np.cos(X) * DX,),
    ),
    "grad": (lambda f: jax.grad(f)(X), np.cos(X)),
    "jit of value_and_grad": (lambda f: jax.jit(jax.value_and_grad(f))(X), (np.sin(X), np.cos(X))),
    "jacfwd": (lambda f: jax.jacfwd(f)(X), np.cos(X)),
    "jacrev": (lambda f: jax.jacrev(f)(X), np.cos(X)),
    "hessian": (lambda f: jax.hessian(f)(X), -np.sin(X)),
    "jit of hessian": (lambda f: jax.jit(jax.hessian(f))(X), -np.sin(X)),
    "grad of grad of grad": (lambda f: jax.grad(jax.grad(jax.grad(f)))(X), -np.cos(X)),
    "grad of a product": (lambda f: jax.grad(lambda x: f(x) * f(x))(X), 2 * np.sin(X) * np.cos(X)),
}
ONLY_REVERSE = ("value", "vjp", "vjp, applied twice", "grad", "jit of value_and_grad", "jacrev")
REVERSE = {name: FORWARD[name] for name in (*ONLY_REVERSE, "grad of a product")}
CASES = [(with_custom_jvp, name, *FORWARD[name]) for name in FORWARD] + [
    (with_custom_vjp, name, *REVERSE[name]) for name in REVERSE
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "name", "program", "expected"), CASES, ids=[f"{r.__name__}-{n}" for r, n, *_ in CASES]
)
def test_callbacks_in_a_rule_give_the_derivative_with_the_same_calls_as_jax(
    our_pure, jax_pure, run, rule, name, program, expected
):
    (ours, calls), (theirs, jax_calls) = rule(our_pure), rule(jax_pure)
    returned_value = run(program, ours)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), returned_value, expected)
    run(program, theirs)
    assert collections.Counter(calls) == collections.Counter(jax_calls)


@pytest.mark.parametrize("method", ["defjvp", "defvjp"])
@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["grad", "jit of grad"])
def test_rule_of_a_decorated_callback_supports_nondiff_argnums(run, method, compiled):
    """As with jax.custom_jvp and jax.custom_vjp, the rule gets those arguments first."""
    calls = []
    power = jaxcb.pure(noting(calls, "power", lambda n, x: x**n), result=SCALAR)

    def derivative(n, x):
        return n * power(n - 1, x)

    if method == "defjvp":
        power.defjvp(
            lambda n, primals, tangents: (
                power(n, *primals),
                derivative(n, *primals) * tangents[0],
            ),
            nondiff_argnums=(0,),
        )
    else:
        power.defvjp(
            lambda n, x: (power(n, x), x),
            lambda n, x, ct: (derivative(n, x) * ct,),
            nondiff_argnums=(0,),
        )
    slope = run(compiled(jax.value_and_grad(lambda x: power(3, x))), X)
    np.testing.assert_allclose(slope, (X**3, 3 * X**2), rtol=1e-6)
    assert calls == ["power", "power"]


def test_rule_of_a_decorated_callback_gets_symbolic_zeros(run):
    """The tangent of the argument that is not differentiated is a symbolic zero."""
    seen, calls = [], []
    product = jaxcb.pure(noting(calls, "product", np.multiply), result=SCALAR)

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        seen.append([type(t) is jax.custom_derivatives.SymbolicZero for t in (dx, dy)])
        return product(x, y), dx * y

    product.defjvp(rule, symbolic_zeros=True)
    value, slope = run(jax.jvp, lambda x: product(x, DX), (X,), (np.float32(1),))
    np.testing.assert_allclose((value, slope), (X * DX, DX))
    assert seen == [[False, True]]
    assert calls == ["product"]


@pytest.mark.parametrize(
    "differentiate",
    [
        lambda f: jax.jvp(f, (X,), (DX,)),
        lambda f: jax.vjp(f, X),
        lambda f: jax.linearize(f, X),
        lambda f: jax.hessian(f)(X),
        lambda f: jax.jacfwd(f)(X),
        lambda f: jax.jit(jax.grad(f))(X),
    ],
    ids=["jvp", "vjp", "linearize", "hessian", "jacfwd", "jit of grad"],
)
def test_differentiating_a_pure_callback_without_a_rule_fails_while_tracing(pure, differentiate):
    calls = []
    f = pure(noting(calls, "sin", np.sin), SCALAR)
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        differentiate(f)
    assert calls == []


def test_transposing_a_pure_callback_is_refused(pure):
    calls = []
    f = pure(noting(calls, "double", lambda x: 2 * x), SCALAR)
    with pytest.raises(ValueError, match="Pure callbacks do not support transpose"):
        jax.linear_transpose(f, X)(DX)
    assert calls == []


@ordered_or_not
def test_transposing_an_io_callback_is_refused(io, ordered):
    calls = []
    f = io(noting(calls, "double", lambda x: 2 * x), SCALAR, ordered=ordered)
    with pytest.raises(ValueError, match="IO callbacks do not support transpose"):
        jax.linear_transpose(f, X)(DX)
    assert calls == []


IO_PROGRAMS = {
    "jvp": lambda f: jax.jvp(f, (X,), (DX,)),
    "grad": lambda f: jax.grad(f)(X),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(X),
    "linearize": lambda f: jax.linearize(f, X)[1](DX),
}


@ordered_or_not
@pytest.mark.parametrize("name", IO_PROGRAMS)
def test_io_callback_in_a_custom_jvp_rule_makes_the_same_calls_as_in_jax(
    our_io, jax_io, run, name, ordered
):
    found = []
    for io in (our_io, jax_io):
        calls = []
        call = io(noting(calls, "rule", np.negative), like_first, ordered=ordered)
        f = jax.custom_jvp(jnp.sin)

        def rule(primals, tangents, call=call):
            (x,), (dx,) = primals, tangents
            call(jax.lax.stop_gradient(x))
            return jnp.sin(x), jnp.cos(x) * dx

        f.defjvp(rule)
        found.append((_outcome(lambda f=f: run(IO_PROGRAMS[name], f)), calls))
    assert found[0] == found[1]


@ordered_or_not
@pytest.mark.parametrize("name", ["grad", "jit of grad"])
@pytest.mark.parametrize("place", ["primal", "forward", "backward"])
def test_io_callback_in_a_custom_vjp_rule_makes_the_same_calls_as_in_jax(
    our_io, jax_io, run, name, place, ordered
):
    found = []
    for io in (our_io, jax_io):
        calls = []

        def call_in(rule, x, io=io, calls=calls):
            if rule == place:
                io(noting(calls, rule, np.negative), like_first, ordered=ordered)(x)

        f = jax.custom_vjp(lambda x: (call_in("primal", x), jnp.sin(x))[1])
        f.defvjp(
            lambda x, call_in=call_in: (call_in("forward", x), (jnp.sin(x), x))[1],
            lambda x, ct, call_in=call_in: (call_in("backward", ct), (jnp.cos(x) * ct,))[1],
        )
        found.append((_outcome(lambda f=f: run(IO_PROGRAMS[name], f)), calls))
    assert found[0] == found[1]


def _outcome(program):
    """Return the program's values as Python numbers, or the class of the error it raises."""
    try:
        return jax.tree.map(lambda x: np.asarray(x).item(), program())
    except Exception as error:
        return type(error)
