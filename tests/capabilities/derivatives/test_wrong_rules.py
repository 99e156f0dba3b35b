"""A missing or wrong derivative rule causes a one-paragraph error that names the callback."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from ._rules import Theirs


def host_sin(x):
    return np.sin(x)


def pair(x, n):
    return np.sin(x), n


@pytest.fixture
def sin():
    return jaxcb.pure(host_sin, result="x")


def jvp(f, *primals):
    return lambda: jax.jvp(f, primals, tuple(map(jnp.ones_like, primals)))


@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_error_without_a_rule_names_three_ways_to_define_one(sin, compiled):
    with pytest.raises(ValueError, match="cannot differentiate host_sin@test_wrong") as raised:
        compiled(jax.grad(sin))(1.0)
    words = str(raised.value)
    for advice in ("@host_sin.defjvp", "host_sin.defvjp", 'derivative="finite"'):
        assert advice in words
    assert "\n" not in words.split("\n----")[0]  # JAX's own note comes after it


FORWARD = {  # a rule, and words of its message
    "no pair": (lambda p, t: t[0], "returned float32[2]. Return a pair, (primal_out, tangent_out)"),
    "three": (lambda p, t: (p[0], t[0], t[0]), "Return a pair, (primal_out, tangent_out)"),
    "two tangents": (
        lambda p, t: (jnp.sin(p[0]), (t[0], t[0])),
        "returned the tangent (float32[2], float32[2]), expected float32[2] for the value",
    ),
    "no tangent": (lambda p, t: (jnp.sin(p[0]), None), "the tangent None, expected float32"),
    "tangent of another shape": (
        lambda p, t: (jnp.sin(p[0]), t[0][0]),
        "returned the tangent float32[], expected float32[2] for the value float32[2]",
    ),
    "tangent of another dtype": (
        lambda p, t: (jnp.sin(p[0]), t[0].astype(jnp.float16)),
        "returned the tangent float16[2], expected float32[2]",
    ),
    "value of another shape": (
        lambda p, t: (p[0][0], t[0][0]),
        "returned the value float32[], expected float32[2]. Return the result of host_s",
    ),
    "value of another dtype": (
        lambda p, t: (p[0].astype(jnp.float16), t[0].astype(jnp.float16)),
        "returned the value float16[2], expected float32[2]",
    ),
    "value of another structure": (
        lambda p, t: ((p[0],), (t[0],)),
        "returned the value (float32[2],), expected float32[2]",
    ),
}  # fmt: skip
X = np.float32([0.5, 1.5])


def refused(program):
    """Return the error of a program."""
    with pytest.raises((TypeError, ValueError)) as raised:
        program()
    return raised


@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FORWARD)
def test_error_of_a_wrong_forward_rule_names_the_callback(sin, name, compiled):
    rule, words = FORWARD[name]

    def sin_jvp(primals, tangents):
        return rule(primals, tangents)

    sin.defjvp(sin_jvp)
    raised = refused(jvp(compiled(sin), X))
    message = str(raised.value)
    assert message.startswith("cannot differentiate host_sin: its rule sin_jvp returned ")
    assert words in message
    assert "\n" not in message
    plain = Theirs(jnp.sin, None)
    plain.defjvp(sin_jvp)
    assert refused(jvp(jax.jit(plain), X)).type is raised.type


REVERSE = {
    "no tuple": (lambda x, ct: ct, "returned float32[2], no tuple, for 1 argument. Return a tuple"),
    "too many": (lambda x, ct: (ct, ct), "returned 2 cotangents for 1 argument. Return a tuple of"),
    "none": (lambda x, ct: (), "returned 0 cotangents for 1 argument"),
    "nothing": (lambda x, ct: None, "returned None, no tuple, for 1 argument"),
    "another shape": (
        lambda x, ct: (ct[0],),
        "returned the cotangent float32[] for argument 0, expected float32[2]",
    ),
    "another structure": (
        lambda x, ct: ({"a": ct},),
        "returned the cotangent {'a': float32[2]} for argument 0, expected float32[2]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", REVERSE)
def test_error_of_a_wrong_backward_rule_names_the_callback(sin, name, compiled):
    rule, words = REVERSE[name]

    def forward(x):
        return jnp.sin(x), x

    def backward(residuals, ct):
        return rule(residuals, ct)

    sin.defvjp(forward, backward)
    raised = refused(lambda: jax.vjp(compiled(sin), X)[1](X))
    message = str(raised.value)
    assert message.startswith("cannot differentiate host_sin: its rule backward returned ")
    assert words in message
    assert "\n" not in message
    plain = Theirs(jnp.sin, None)
    plain.defvjp(forward, backward)
    assert refused(lambda: jax.vjp(jax.jit(plain), X)[1](X)).type is raised.type


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (lambda x: x, "returned float32[2]. Return a pair, (primal_out, residuals)"),
        (lambda x: (x[0], x), "returned the value float32[], expected float32[2]"),
    ],
    ids=["no pair", "another shape"],
)
def test_error_of_a_wrong_forward_half_names_the_callback(sin, forward, words):
    sin.defvjp(forward, lambda x, ct: (ct,))
    raised = refused(lambda: jax.vjp(sin, X))
    assert words in str(raised.value)
    assert str(raised.value).startswith("cannot differentiate host_sin: its rule <lambda> returned")


def test_cotangent_of_one_leaf_is_compared_with_its_own_argument():
    f = jaxcb.pure(lambda x, p: x, result=lambda x, p: x)
    f.defvjp(lambda x, p: (f(x, p), None), lambda _, ct: (ct, {"a": ct, "b": ct[0]}))
    words = re.escape(
        "the cotangent {'a': float32[2], 'b': float32[]} for argument 1, expected {'a': "
    )
    with pytest.raises(ValueError, match=words):
        jax.vjp(f, X, {"a": X, "b": X})[1](X)


def test_tangent_of_an_integer_result_is_shown():
    f = jaxcb.pure(pair, result="(x, n)")
    f.defjvp(lambda p, t: (f(*p), (t[0], jnp.zeros((), jnp.int32))))
    with pytest.raises(TypeError, match=r"float0\[\]\) for .* jax.dtypes.float0\) for integers"):
        jax.jvp(lambda x: f(x, 3), (1.0,), (1.0,))


def test_error_about_a_non_array_argument_says_how_to_pass_it_to_the_rule():
    """JAX refuses such an argument too, even a default, and even without differentiation."""

    def host(x, mode="sine"):
        return np.sin(x) if mode == "sine" else np.cos(x)

    f = jaxcb.pure(host, result="x")
    f.defjvp(lambda p, t: (f(*p), t[0]))
    for call in (lambda: f(1.0), lambda: jax.grad(f)(1.0, mode="cosine")):
        with pytest.raises(TypeError, match=r"cannot call host with .* nondiff_argnums=\(1,\)"):
            call()

    f.defjvp(
        lambda mode, p, t: (f(*p, mode), (jnp.cos if mode == "sine" else jnp.sin)(p[0]) * t[0]),
        nondiff_argnums=(1,),
    )
    np.testing.assert_allclose(f(1.0), np.sin(1), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(f)(1.0), np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(f)(1.0, mode="cosine"), np.sin(1), rtol=1e-6)


@pytest.mark.parametrize("rules", [(None,), (None, len), (len, None)])
def test_rule_that_is_not_a_function_is_refused_immediately(sin, rules):
    method = sin.defjvp if len(rules) == 1 else sin.defvjp
    with pytest.raises(TypeError, match="cannot use None as a derivative rule of host_sin"):
        method(*rules)


def test_checks_that_options_of_jax_disable_are_skipped(sin):
    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct[0],))
    option = "jax_disable_bwd_checks"
    if not hasattr(jax.config, option):
        option = "jax_custom_vjp_disable_shape_check"
    jax.config.update(option, True)
    try:
        assert jax.vjp(sin, X)[1](X)[0].shape == ()
    finally:
        jax.config.update(option, False)


def test_result_declaration_gets_nondifferentiable_arguments_in_order():
    f = jaxcb.pure(lambda one, x, two: {one: x}, result=lambda one, x, two: {one: x})
    f.defjvp(lambda one, two, p, t: (f(one, *p, two), {one: 2 * t[0]}), nondiff_argnums=(2, 0))
    assert jax.jvp(lambda x: f("a", x, "b"), (1.0,), (1.0,))[1] == {"a": 2.0}


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
