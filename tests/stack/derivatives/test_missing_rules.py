"""If a derivative rule is missing, the advice fits how the function became a callback."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = jnp.float32(3)


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


@pytest.mark.parametrize(
    ("f", "advice"),
    [
        (WITHOUT_A_RULE["pure_callback"][0], "Wrap the call in jax.custom_vjp."),
        (WITHOUT_A_RULE["pure"][0], "Give it a rule: host.defvjp(forward, backward)."),
    ],
    ids=["pure_callback", "pure"],
)
def test_error_of_a_transpose_without_a_rule_says_how_to_define_one(f, advice):
    with pytest.raises(ValueError, match="cannot transpose ") as caught:
        jax.linear_transpose(f, X)(X)
    assert str(caught.value).endswith(f" do not support transpose. {advice}")


def test_following_the_advice_works():
    """Try both fixes: central differences of x**2 and a wrapped call."""
    square = jaxcb.pure(np.square, result="x", derivative="finite")
    assert jax.grad(square)(X) == pytest.approx(6, rel=1e-4)
    wrapped = jax.custom_jvp(lambda x: jaxcb.pure_callback(np.square, x, x))
    wrapped.defjvp(lambda p, t: (wrapped(*p), 2 * p[0] * t[0]))
    assert jax.grad(wrapped)(X) == 6


NOTHING = {
    "io_callback": (lambda x: jaxcb.io_callback(host, None, x), "jaxcb.debug_callback"),
    "io": (jaxcb.io(host, result=None), "@jaxcb.debug"),
}


@pytest.mark.parametrize(("f", "instead"), NOTHING.values(), ids=NOTHING)
def test_gradient_of_io_without_a_result_advises_debug_first(f, instead):
    with pytest.raises(ValueError, match="IO callbacks do not support JVP") as caught:
        jax.grad(lambda x: (f(x), x)[1])(X)
    advice = (
        f"It returns nothing: use a debug callback ({instead}), which does not affect gradients. "
    )
    assert advice in str(caught.value)


def test_gradient_of_io_with_a_result_does_not_advise_debug():
    with pytest.raises(ValueError, match=r"do not support JVP\. Pass its arguments through"):
        jax.grad(lambda x: jaxcb.io_callback(host, x, x))(X)
