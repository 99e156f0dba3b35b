"""``%%jax_callback --compile numba``."""

import pytest

LINE = "%%jax_callback pure --result x --compile numba"


@pytest.fixture
def program(kernel):
    """Run a cell that registers ``scaled``, and compile a program that calls it."""
    kernel.run("import jax, jax.numpy as jnp")
    kernel.run(f"{LINE}\ndef scaled(x):\n    return 2 * x", cell="definition")
    kernel.run("f = jax.jit(jax.vmap(scaled))\nx = jnp.arange(3.0)")
    kernel.run("f(x)")
    return kernel


def test_functions_of_the_cell_run_as_machine_code_in_the_host_trace(program):
    ran = program.run("f(x).tolist()")
    assert ran.value == "[0.0, 2.0, 4.0]"
    (site,) = ran.sites
    assert site["calls"] == 3
    assert any("compiled by numba" in note for note in site["notes"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pure --result x --compile numbr", "unknown compiler 'numbr'. Pass compile="),
        ("pure --result x --compile numba --arrays jax", "arrays='jax' cannot be combined with"),
        ("debug --compile numba", "it is for pure, io and buffer"),
    ],
)
def test_wrong_options_are_refused_with_what_to_write(kernel, line, words):
    ran = kernel.run(f"%%jax_callback {line}\ndef show(x):\n    return x")
    assert words in ran.text + " ".join(map(str, ran.error or ()))
