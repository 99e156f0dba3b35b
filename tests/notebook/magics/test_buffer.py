"""``%%jax_callback buffer`` registers host functions that write into an output array."""

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


def test_callback_with_a_side_effect_is_kept(kernel):
    kernel.run(
        "%%jax_callback buffer --result x --has-side-effect\n"
        "def shout(out, x):\n    print('heard', x)\n    out[...] = 0\n"
    )
    ran = kernel.run(USE + "jax.jit(lambda x: (shout(x), 1)[1])(x); jax.effects_barrier()")
    assert "heard [0. 1. 2.]" in ran.text
