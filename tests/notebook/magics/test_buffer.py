"""``%%jax_callback buffer`` registers host functions that write into an output array."""

import pytest

USE = "x = jnp.arange(3, dtype=jnp.float32)\n"


def test_buffer_callback_of_a_cell_runs_and_its_calls_are_shown(kernel):
    ran = kernel.run(
        "%%jax_callback buffer --result x --vmap-method expand_dims --check\n"
        "def double(out, x):\n    np.multiply(x, 2, out=out)\n"
    )
    assert ran.error is None, ran.error
    ran = kernel.run(USE + "jax.jit(jax.vmap(double))(jnp.stack([x, x + 1])).tolist()")
    assert ran.value == "[[0.0, 2.0, 4.0], [2.0, 4.0, 6.0]]"
    (site,) = ran.sites
    assert (site["flavor"], site["function"], site["calls"]) == ("buffer", "double", 1)


def test_annotation_of_the_output_replaces_the_option_result(kernel):
    ran = kernel.run(
        "%%jax_callback buffer\nfrom jaxtyping import Array, Float\n"
        'def more(out: Float[Array, "n+1"], x: Float[Array, "n"]):\n    out[:-1], out[-1] = x, 9\n'
    )
    assert ran.error is None, ran.error
    assert kernel.run(USE + "jax.jit(more)(x).tolist()").value == "[0.0, 1.0, 2.0, 9.0]"


def test_callback_with_a_side_effect_is_kept(kernel):
    kernel.run(
        "%%jax_callback buffer --result x --has-side-effect\n"
        "def shout(out, x):\n    print('heard', x)\n    out[...] = 0\n"
    )
    ran = kernel.run(USE + "jax.jit(lambda x: (shout(x), 1)[1])(x); jax.effects_barrier()")
    assert "heard [0. 1. 2.]" in ran.text


def test_option_jvp_makes_it_differentiable(kernel):
    ran = kernel.run(
        "%%jax_callback buffer --result x --jvp sine_jvp\n"
        "def sine(out, x):\n    np.sin(x, out=out)\n\n"
        "def sine_jvp(primals, tangents):\n"
        "    return sine(*primals), jnp.cos(*primals) * tangents[0]\n"
    )
    assert ran.error is None, ran.error
    ran = kernel.run("np.allclose(jax.vmap(jax.grad(sine))(jnp.arange(3.0)), np.cos(np.arange(3)))")
    assert ran.value == "True"


@pytest.mark.parametrize(
    "line, words",
    [
        ("buffer", "buffer needs --result: what host returns, as an expression"),
        ("buffer", 'or an annotation out: Float[Array, "n"]'),
        ("buffer --result out", "--result 'out' uses 'out', which is not defined"),
        (
            "buffer --result x --ordered",
            "--ordered does not go with buffer: it is for io and debug",
        ),
        ("pure --result x --check", "--check does not go with pure: it is for buffer"),
        ("buffr --result x", "unknown flavor 'buffr'; did you mean 'buffer'?"),
        ("buffer --result x --chek", "did you mean '--check'?"),
    ],
)
def test_wrong_options_are_a_usage_error(kernel, line, words):
    ran = kernel.run(f"%%jax_callback {line}\ndef host(out, x):\n    out[...] = x\n")
    assert ran.text.startswith("UsageError")
    assert words in ran.text
