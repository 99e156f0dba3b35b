"""A missing or wrong derivative rule causes a one-paragraph error that names the callback."""

import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from ._rules import Theirs


def host_sin(x):
    return np.sin(x)


@pytest.fixture
def sin():
    return jaxcb.pure(host_sin, result="x")


def jvp(f, *primals):
    return lambda: jax.jvp(f, primals, tuple(map(jnp.ones_like, primals)))


FORWARD = {
    "no pair": lambda p, t: t[0],
    "three": lambda p, t: (p[0], t[0], t[0]),
    "two tangents": lambda p, t: (jnp.sin(p[0]), (t[0], t[0])),
    "no tangent": lambda p, t: (jnp.sin(p[0]), None),
    "tangent of another shape": lambda p, t: (jnp.sin(p[0]), t[0][0]),
    "tangent of another dtype": lambda p, t: (jnp.sin(p[0]), t[0].astype(jnp.float16)),
}
BACKWARD = {
    "no tuple": lambda x, ct: ct,
    "too many": lambda x, ct: (ct, ct),
    "none": lambda x, ct: (),
    "another shape": lambda x, ct: (ct[0],),
    "another structure": lambda x, ct: ({"a": ct},),
}
WORDS = "raised for the derivative of host_sin, whose rule is sin_jvp"
X = np.float32([0.5, 1.5])
CALLS = pytest.mark.parametrize(
    "called",
    [lambda f: f, jax.jit, lambda f: lambda x: f.where(True, x, otherwise=0.0)],
    ids=["eager", "jit", "masked"],
)


def refused(program):
    """Return the error of a program."""
    with pytest.raises((TypeError, ValueError)) as raised:
        program()
    return raised.value


@CALLS
@pytest.mark.parametrize("rule", FORWARD.values(), ids=FORWARD)
def test_wrong_forward_rule_is_the_error_of_jax(sin, rule, called):
    def sin_jvp(primals, tangents):
        return rule(primals, tangents)

    sin.defjvp(sin_jvp)
    plain = Theirs(jnp.sin, None)
    plain.defjvp(sin_jvp)
    assert type(refused(jvp(called(sin), X))) is type(refused(jvp(plain, X)))


@pytest.mark.parametrize("rule", FORWARD.values(), ids=FORWARD)
def test_error_of_a_wrong_forward_rule_names_the_callback_and_the_rule(sin, rule):
    @sin.defjvp
    def sin_jvp(primals, tangents):
        return rule(primals, tangents)

    for differentiated in (jvp(sin, X), jvp(lambda x: 2 * sin(x) + 1, X)):
        assert WORDS in refused(differentiated).__notes__


def test_error_below_jit_has_the_name_of_a_ufunc_and_the_line_of_its_call():
    sine = jaxcb.pure(np.sin, result="x")
    sine.defjvp(FORWARD["no pair"])
    error = refused(lambda: jax.grad(jax.jit(lambda x: sine(x)))(1.0))
    assert "for function sin must" in str(error)
    (called,) = traceback.extract_tb(error.__cause__.__traceback__)[-1:]
    assert "lambda x: sine(x)" in called.line


@CALLS
@pytest.mark.parametrize("rule", BACKWARD.values(), ids=BACKWARD)
def test_wrong_backward_rule_is_the_error_of_jax(sin, rule, called):
    rules = lambda x: (jnp.sin(x), x), lambda residuals, ct: rule(residuals, ct)
    sin.defvjp(*rules)
    plain = Theirs(jnp.sin, None)
    plain.defvjp(*rules)
    ours, theirs = (refused(lambda f=f: jax.vjp(f, X)[1](X)) for f in (called(sin), plain))
    assert type(ours) is type(theirs)


def test_error_that_a_rule_raises_is_not_changed(sin):
    @sin.defjvp
    def sin_jvp(primals, tangents):
        raise ValueError("no slope")

    error = refused(jvp(sin, X))
    assert error.args == ("no slope",) and WORDS not in error.__notes__


@pytest.mark.parametrize("rules", [(None,), (None, len), (len, None)])
def test_rule_that_is_not_a_function_is_refused_immediately(sin, rules):
    method = sin.defjvp if len(rules) == 1 else sin.defvjp
    with pytest.raises(TypeError, match="cannot use None as a derivative rule of host_sin"):
        method(*rules)


def test_cotangents_that_jax_accepts_are_accepted():
    """JAX accepts None for an array, and any cotangent for integers."""
    f = jaxcb.pure(lambda x, n, y: x * n, result="x")
    f.defvjp(lambda x, n, y: (f(x, n, y), None), lambda _, ct: (2 * ct, jnp.zeros(5), None))
    by_x, by_n, by_y = jax.vjp(f, X, np.int32(3), X)[1](X)
    np.testing.assert_array_equal(by_x, 2 * X)
    assert by_n.dtype == jax.dtypes.float0
    np.testing.assert_array_equal(by_y, 0 * X)


def test_reverse_rule_of_only_one_function_is_refused():
    f = jaxcb.pure(np.sin, result=lambda x: x)
    with pytest.raises(TypeError, match=r"of sin: .*sin\.defvjp\(forward, backward\)"):

        @f.defvjp
        def rule(x):
            return x
