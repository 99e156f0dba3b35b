"""If a derivative rule is missing, the advice fits how the function became a callback."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = jnp.float32(3)
DROPS_RULES = jax.__version_info__ < (0, 12)  # of a loop that is differentiated in reverse mode


def write(out, x):
    out[...] = x


def host(x):
    return x


WITHOUT_A_RULE = {
    "pure_callback": (
        lambda x: jaxcb.pure_callback(host, x, x),
        "Wrap the call in jax.custom_jvp or jax.custom_vjp, or register the function: "
        'jaxcb.pure(..., derivative="finite").',
    ),
    "buffer_callback": (
        lambda x: jaxcb.buffer_callback(write, x)(x),
        "Wrap the call in jax.custom_jvp or jax.custom_vjp.",
    ),
    "pure": (
        jaxcb.pure(host, result="x"),
        'Give it a rule: @host.defjvp or host.defvjp, or register it with derivative="finite".',
    ),
    "buffer": (jaxcb.buffer(write, result="x"), "Give it a rule: @write.defjvp or write.defvjp."),
}


@pytest.mark.parametrize(("f", "advice"), WITHOUT_A_RULE.values(), ids=WITHOUT_A_RULE)
def test_error_of_a_gradient_without_a_rule_says_how_to_define_one(f, advice):
    for call in (f, jax.jit(f)):
        with pytest.raises(ValueError, match="cannot differentiate ") as caught:
            jax.grad(call)(X)
        assert str(caught.value).endswith(f" do not support JVP. {advice}")


LOOPS = {
    "scan": lambda f, x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "map": lambda f, x: jax.lax.map(f, jnp.ones(2) * x).sum(),
    "fori_loop": lambda f, x: jax.lax.fori_loop(0, 2, lambda _, c: f(c), x),
}


@pytest.mark.long
@pytest.mark.parametrize("masked", [False, True], ids=["all calls", "masked calls"])
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_second_derivative_of_a_loop_is_right_or_does_not_ask_for_the_rule_that_it_has(
    loop, masked
):
    """Before JAX 0.12, JAX drops the rules here, also those of jax.custom_jvp."""
    sine = jaxcb.pure(np.sin, result="x")
    sine.defjvp(lambda p, t: (sine(*p), jnp.cos(p[0]) * t[0]))
    called = (lambda x: sine.where(x < 9, x, otherwise=0)) if masked else sine
    second = {
        "forward first": lambda f: jax.jacrev(jax.jacfwd(f))(X),
        "reverse first": lambda f: jax.hessian(f)(X),
    }
    if DROPS_RULES:
        with pytest.raises(ValueError, match="It has a rule, which JAX drops"):
            second.pop("reverse first")(lambda x: loop(called, x))
    for derivative in second.values():
        expected = derivative(lambda x: loop(jnp.sin, x))
        np.testing.assert_allclose(derivative(lambda x: loop(called, x)), expected, rtol=1e-5)


@pytest.mark.parametrize("first", ["jvp", "vjp"])
def test_second_rule_of_another_kind_is_refused_and_the_first_one_stays(first):
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    define = {
        "jvp": lambda slope: double.defjvp(lambda p, t: (double(*p), slope * t[0])),
        "vjp": lambda slope: double.defvjp(
            lambda x: (double(x), None), lambda _, ct: (slope * ct,)
        ),
    }
    second = {"jvp": "vjp", "vjp": "jvp"}[first]
    define[first](2)
    with pytest.raises(TypeError, match=f"a rule by def{second}: it has one by def{first}, and"):
        define[second](3)
    assert jax.grad(double)(X) == 2
    define[first](4)  # a notebook cell may run again
    assert jax.grad(double)(X) == 4


def test_following_the_advice_works():
    """Try both fixes: central differences of x**2 and a wrapped call."""
    square = jaxcb.pure(np.square, result="x", derivative="finite")
    assert jax.grad(square)(X) == pytest.approx(6, rel=1e-4)
    wrapped = jax.custom_jvp(lambda x: jaxcb.pure_callback(np.square, x, x))
    wrapped.defjvp(lambda p, t: (wrapped(*p), 2 * p[0] * t[0]))
    assert jax.grad(wrapped)(X) == 6


@pytest.mark.kept
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda z: z, "register it with linear='z', the parameter"),
        (lambda p, q: q, "register it with linear='p' or linear='q', the parameter"),
        (lambda *several: several[-1], "register it with linear='several', the parameter"),
    ],
)
def test_the_advice_to_register_as_linear_names_parameters_of_the_function(function, words):
    callback = jaxcb.pure(function, result=lambda *args: args[-1])
    given = [1.0] * function.__code__.co_argcount or [1.0]
    with pytest.raises(ValueError, match=words):
        jax.linear_transpose(callback, *given)(1.0)


@pytest.mark.kept
def test_the_advice_for_a_buffer_callback_leaves_out_its_output():
    callback = jaxcb.buffer(lambda out, z: None, result="z")
    with pytest.raises(ValueError, match="register it with linear='z', the parameter"):
        jax.linear_transpose(callback, 1.0)(1.0)


@pytest.mark.kept
@pytest.mark.parametrize(
    "derivative",
    [
        lambda: jax.grad(jaxcb.pure(lambda x: x, result="x"))(1.0),
        lambda: jax.linear_transpose(jaxcb.pure(lambda x: x, result="x"), 1.0)(1.0),
        lambda: jax.hessian(jaxcb.pure(lambda x: x, result="x", derivative="finite"))(1.0),
        lambda: jax.hessian(jaxcb.pure(lambda x: (x, x), result="x", gradient="x"))(1.0),
        lambda: jax.linear_transpose(jaxcb.pure(lambda x: x, result="x", linear="x"), 1.0)(1.0),
        lambda: jax.grad(jaxcb.pure(lambda a, b: b, result="b", linear="b"))(1.0, 2.0),
        lambda: jaxcb.pure(lambda x: x, result="x").deftranspose(lambda x: x),
        lambda: jaxcb.pure(lambda x: x, result="x").defvjp(lambda x: x),
    ],
)
def test_advice_for_a_lambda_is_code_that_can_be_written(derivative):
    with pytest.raises((TypeError, ValueError), match=r"callback\.def") as caught:
        derivative()
    assert "<lambda>.def" not in str(caught.value).replace("cannot call <lambda>.def", "")
