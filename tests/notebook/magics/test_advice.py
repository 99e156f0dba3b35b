"""Advice for a function of a %%jax_callback cell names the options of the magic."""

import pytest

from jupyter_jaxcb.stack import as_magic_options

WRONG = {
    "gradient, pure": (
        "pure --result x", "x", "jax.grad(host)(1.)",
        "Give it a rule: @host.defjvp or host.defvjp, or add --jvp NAME, --vjp FORWARD BACKWARD "
        "or --derivative finite to its magic line.",
    ),
    "gradient, buffer": (
        "buffer --result x", "x", "jax.grad(host)(1.)",
        "or add --jvp NAME or --vjp FORWARD BACKWARD to its magic line.",
    ),
    "transpose": (
        "pure --result x", "x", "jax.linear_transpose(host, 1.)(1.)",
        "host.defvjp(forward, backward), or add --vjp FORWARD BACKWARD to its magic line.",
    ),
    "gradient, io": (
        "io --result None", "None", "jax.grad(lambda x: (host(x), x)[1])(1.)",
        "It returns nothing: use a debug callback (%%jax_callback debug), which does not affect "
        "gradients. Or pass its arguments through jax.lax.stop_gradient, or wrap the call in "
        "jax.custom_jvp.",
    ),
    "vmap of an ordered callback": (
        "io --ordered --result x", "x", "jax.vmap(host)(jnp.ones(2))",
        "has --ordered, but the elements of a batch have no order. Drop --ordered, or loop with "
        "jax.lax.map.",
    ),
    "result without the axes of a batch": (
        "pure --result x --vmap-method expand_dims", "np.float32(x.sum())",
        "jax.vmap(host)(jnp.ones(2))", "or use the vmap method 'sequential'.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("line", "result", "call", "advice"), WRONG.values(), ids=WRONG)
def test_advice_of_an_error_names_the_option_of_the_magic(kernel, line, result, call, advice):
    parameters = "out, x" if line.startswith("buffer") else "x"
    kernel.run(f"%%jax_callback {line}\ndef host({parameters}): return {result}")
    _, message, _ = kernel.run(call).error
    assert message.partition("\n")[0].endswith(advice)


def test_advice_of_a_batch_check_names_the_option_of_the_magic(kernel):
    kernel.run(
        "%%jax_callback pure --result x --vmap-method expand_dims\n"
        "def host(x): return x / x.shape[0]"
    )
    ran = kernel.run("%jax_check host(np.float32([1, 2, 3]))")
    assert "Register it with --vmap-method sequential, or make it accept" in ran.value


def test_keyword_arguments_in_a_message_become_options_of_the_magic():
    text = (
        "vmap_method='fast' is wrong: pass vmap_method= one of 'a', 'b', drop ordered=True or "
        "executor=<Pool>, or give a rule: defjvp or defvjp. Wrap it: lambda x: f(arrays=x)."
    )
    assert as_magic_options(text, {"vmap_method", "ordered", "executor", "arrays"}) == (
        "--vmap-method fast is wrong: pass --vmap-method one of 'a', 'b', drop --ordered or "
        "--executor <Pool>, or give a rule: --jvp NAME or --vjp FORWARD BACKWARD. Wrap it: "
        "lambda x: f(arrays=x)."
    )
