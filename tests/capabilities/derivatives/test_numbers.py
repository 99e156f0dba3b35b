"""Derivative rules get arrays also where a program passes Python numbers to `jax.jvp` or a vjp."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

pytestmark = pytest.mark.kept


def _returned(**options):
    return jaxcb.pure(lambda x: (x * x, 2 * x), result="x", gradient="x", **options)


def _finite(**options):
    return jaxcb.pure(lambda x: x * x, result="x", derivative="finite", **options)


def _by_jvp(symbolic_zeros=False):
    square = jaxcb.pure(lambda x: x * x, result="x")

    @square.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return square(x), 2 * x.astype(x.dtype) * dx.astype(x.dtype)

    square.defjvp(rule, symbolic_zeros=symbolic_zeros)
    return square


def _by_vjp():
    square = jaxcb.pure(lambda x: x * x, result="x")
    square.defvjp(
        lambda x: (square(x), x.astype(x.dtype)), lambda x, ct: (2 * x * ct.astype(x.dtype),)
    )
    return square


def _by_vjp_with_symbolic_zeros():
    square = jaxcb.pure(lambda x: x * x, result="x")
    square.defvjp(
        lambda x: (square(x.value), x.value.astype(x.value.dtype)),
        lambda x, ct: (2 * x * ct.astype(x.dtype),),
        symbolic_zeros=True,
    )
    return square


def _masked(callback):
    return lambda x: callback.where(x > 0, x, otherwise=0.0)


def _transposed(**options):
    triple = jaxcb.pure(lambda x: 3 * x, result="x", linear="x", **options)
    triple.deftranspose(lambda ct: 3 * ct)
    return triple


def _self_adjoint():
    return jaxcb.pure(lambda x: 3 * x, result="x", linear="x", linear_self_adjoint=True)


def _buffer():
    def write(out, x):
        out[...] = 3 * x

    triple = jaxcb.buffer(write, result="x", linear="x")
    triple.deftranspose(write)
    return triple


def _solver():
    divide = jaxcb.pure(lambda a, b: b / a, result="b", linear="b")
    divide.deftranspose(lambda a, ct: ct / a)
    divide.defresidual(lambda a, x, b: a * x - b)
    return lambda x: divide(x, x * x * x)


def _linear_with_rule():
    times = jaxcb.pure(lambda a, b: a * b, result="b", linear="b")
    times.deftranspose(lambda a, ct: a * ct)
    times.defjvp(lambda p, t: (times(*p), p[0] * t[1].astype(p[0].dtype) + t[0] * p[1]))
    return lambda x: times(x, x)


SQUARES = {
    "gradient": _returned(),
    "finite": _finite(),
    "defjvp": _by_jvp(),
    "defjvp, symbolic zeros": _by_jvp(symbolic_zeros=True),
    "masked gradient": _masked(_returned()),
    "masked finite": _masked(_finite()),
    "masked defjvp": _masked(_by_jvp()),
    "gradient in threads": _returned(executor="threads"),
    "finite in threads": _finite(executor="threads"),
    "compiled": _returned(compile="numba"),
    "residual": _solver(),
    "linear with a rule": _linear_with_rule(),
}
BACKWARDS = {"defvjp": _by_vjp(), "defvjp, symbolic zeros": _by_vjp_with_symbolic_zeros()}
TRIPLES = {
    "transpose": _transposed(),
    "transpose in threads": _transposed(executor="threads"),
    "compiled": _transposed(compile="numba"),
    "self-adjoint": _self_adjoint(),
    "buffer": _buffer(),
    "masked": lambda x: TRIPLES["transpose"].where(True, x, otherwise=0.0),
}
WAYS = {
    "jvp": lambda f, x, t: jax.jvp(f, (x,), (t,))[1],
    "jit of jvp": lambda f, x, t: jax.jit(lambda: jax.jvp(f, (x,), (t,))[1])(),
    "vjp": lambda f, x, t: jax.vjp(f, x)[1](t)[0],
}
MORE_WAYS = {
    "jvp of jit": lambda f, x, t: jax.jvp(jax.jit(f), (x,), (t,))[1],
    "vmap of jvp": lambda f, x, t: jax.vmap(lambda x: jax.jvp(f, (x,), (t,))[1])(jnp.full(2, x)),
    "linearize": lambda f, x, t: jax.linearize(f, x)[1](t),
    "jvp in scan": lambda f, x, t: jax.lax.scan(
        lambda c, _: (c, jax.jvp(f, (x,), (t,))[1]), None, length=2
    )[1],
    "jvp of scan": lambda f, x, t: jax.jvp(
        lambda x: jax.lax.scan(lambda c, _: (f(x), None), 0.0 * x, length=2)[0], (x,), (t,)
    )[1],
    "vjp of jit": lambda f, x, t: jax.vjp(jax.jit(f), x)[1](t)[0],
    "jit of vjp": lambda f, x, t: jax.jit(lambda: jax.vjp(f, x)[1](t)[0])(),
    "vmap of vjp": lambda f, x, t: jax.vmap(lambda x: jax.vjp(f, x)[1](t)[0])(jnp.full(2, x)),
}
SLOPES = {"gradient": 1.4, "finite": 1.4, "transpose": 3.0}


def _check(expected, found):
    assert np.asarray(found).dtype == np.float32
    np.testing.assert_allclose(found, np.full(np.shape(found), expected), rtol=2e-3)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", SQUARES)
def test_a_number_is_a_tangent_and_a_cotangent(rule, way):
    _check(1.4 * 1.5, WAYS[way](SQUARES[rule], 0.7, 1.5))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", TRIPLES)
def test_a_number_is_a_tangent_and_a_cotangent_of_a_linear_callback(rule, way):
    _check(3 * 1.5, WAYS[way](TRIPLES[rule], 0.7, 1.5))


@pytest.mark.parametrize("rule", BACKWARDS)
def test_a_number_is_a_cotangent_of_a_reverse_mode_rule(rule):
    _check(1.4 * 1.5, WAYS["vjp"](BACKWARDS[rule], 0.7, 1.5))


@pytest.mark.parametrize("way", MORE_WAYS)
@pytest.mark.parametrize("rule", SLOPES)
def test_a_number_is_a_tangent_under_each_transformation(rule, way):
    function = {**SQUARES, **TRIPLES}[rule]
    _check(SLOPES[rule] * 1.5, MORE_WAYS[way](function, 0.7, 1.5))


@pytest.mark.parametrize("number", [np.float32, np.float64, jnp.float32], ids=["32", "64", "jax"])
@pytest.mark.parametrize("rule", SLOPES)
def test_numbers_of_python_and_numpy_are_mixed(rule, number):
    function = {**SQUARES, **TRIPLES}[rule]
    _check(SLOPES[rule] * 1.5, WAYS["jvp"](function, number(0.7), 1.5))
    _check(SLOPES[rule] * 1.5, WAYS["jvp"](function, 0.7, number(1.5)))


@pytest.mark.parametrize("rule", TRIPLES)
def test_a_linear_callback_is_transposed_at_a_number(rule):
    (found,) = jax.linear_transpose(TRIPLES[rule], 0.7)(1.5)
    _check(3 * 1.5, found)


def test_a_complex_number_is_a_tangent_and_a_cotangent():
    triple = TRIPLES["transpose"]
    given = 0.7 + 0.2j, 1.5 + 1j
    assert jax.jvp(triple, given[:1], given[1:])[1] == 3 * np.complex64(given[1])
    assert jax.vjp(triple, given[0])[1](given[1])[0] == 3 * np.complex64(given[1])


def test_a_rule_gets_the_arguments_that_are_not_differentiated_as_they_are():
    power = jaxcb.pure(lambda x, n: x**n, result="x")
    got = []

    def rule(n, primals, tangents):
        got.append(n)
        (x,), (dx,) = primals, tangents
        return power(x, n), n * power(x, n - 1) * dx.astype(x.dtype)

    power.defjvp(rule, nondiff_argnums=(1,))
    _check(3 * 0.49 * 1.5, jax.jvp(lambda x: power(x, 3), (0.7,), (1.5,))[1])
    assert got == [3] and type(got[0]) is int
