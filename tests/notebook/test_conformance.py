"""The checks of tests/conformance with the magics in a real kernel.

Each test checks the value a cell shows and the host calls its host trace counts.
"""

import pytest


def calls(ran):
    """Return (function, status, host calls) for each site of the host trace."""
    return [(site["function"], site["status"], site["calls"]) for site in ran.sites]


def shapes(site):
    (variant,) = site["shapes"]
    return variant["shapes"].partition(" → ")[0]


@pytest.fixture
def cells(kernel):
    """Return a function that runs cells without an error and returns the output of the last."""

    def run(*sources):
        for source in sources:
            ran = kernel.run(source)
            assert ran.error is None, ran.error[2]
            assert "UsageError" not in ran.text, ran.text
        return ran

    return run


SIN = "%%jax_callback pure --result x\ndef sin(x): return np.sin(x)"


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "expected", "count"),
    [
        ("sin(x[0])", "np.sin(x[0])", 1),
        ("jax.jit(sin)(x)", "np.sin(x)", 1),
        ("jax.vmap(sin)(x)", "np.sin(x)", 4),
        ("jax.lax.scan(lambda c, x: (c, sin(x)), 0, x)[1]", "np.sin(x)", 4),
        ("jax.lax.map(sin, x)", "np.sin(x)", 4),
        ("jax.lax.fori_loop(0, 3, lambda i, c: sin(c), x)", "np.sin(np.sin(np.sin(x)))", 3),
        ("jax.lax.while_loop(lambda c: c > 0.5, sin, np.float32(1))",
         "np.sin(np.sin(np.sin(np.sin(np.sin(np.sin(np.sin(np.sin(np.sin(1)))))))))", 9),
        ("jax.lax.cond(True, sin, lambda x: x, x)", "np.sin(x)", 1),
        ("jax.lax.cond(False, sin, lambda x: x, x)", "x", 0),
        ("jax.lax.switch(1, [lambda x: x, sin], x)", "np.sin(x)", 1),
    ],
)  # fmt: skip
def test_host_sine_equals_numpy_in_all_control_flow(cells, program, expected, count):
    """A `cond` or `switch` calls only the host functions of the branch it enters."""
    setup = "x = np.linspace(0, 1, 4, dtype=np.float32)"
    ran = cells(SIN, setup, f"jax.clear_caches(); np.allclose({program}, {expected}, atol=1e-5)")
    assert ran.value == "True"
    assert sum(number for _, _, number in calls(ran)) == count


def test_bessel_function_has_three_derivatives_by_its_recurrence(cells):
    ran = cells(
        "%%jax_callback pure --result z --vmap-method expand_dims\n"
        "def bessel(v, z): return scipy.special.jv(v, z)",
        "@bessel.defjvp\ndef rule(primals, tangents):\n"
        "    v, z = primals\n"
        "    slope = (bessel(v - 1, z) - bessel(v + 1, z)) / 2\n"
        "    return bessel(v, z), slope * tangents[1]",
        "z = np.linspace(0.5, 9, 7, dtype=np.float32)\n"
        "f, right = bessel, []\n"
        "for order in range(4):\n"
        "    ours = jax.jit(jax.vmap(f, in_axes=(None, 0)))(1, z)\n"
        "    theirs = scipy.special.jvp(1, z.astype(float), order)\n"
        "    right.append(np.allclose(ours, theirs, atol=1e-5))\n"
        "    f = jax.grad(f, argnums=1)\n"
        "right",
    )
    assert ran.value == "[True, True, True, True]"
    assert {status for _, status, _ in calls(ran)} <= {"kept", "unused"}


def test_random_generator_on_the_host_advances(cells):
    """It is called once per run, and under vmap once per batch element, in order."""
    ran = cells(
        "%%jax_callback io --result x\ndef noise(x): return rng.standard_normal(x.shape)",
        "rng, same = np.random.default_rng(0), np.random.default_rng(0)\n"
        "f = jax.jit(noise)\n"
        "ours = [f(np.zeros(2, np.float32)) for _ in range(3)]\n"
        "np.allclose(ours, [same.standard_normal(2) for _ in range(3)])",
    )
    assert ran.value == "True"
    assert calls(ran) == [("noise", "kept", 3)]
    ran = cells(
        "ours = jax.jit(jax.vmap(noise))(np.zeros(5, np.float32))\n"
        "np.allclose(ours, [same.standard_normal() for _ in range(5)])"
    )
    assert ran.value == "True"
    assert calls(ran) == [("noise", "kept", 5)]
    assert shapes(ran.sites[0]) == "()"


def test_ordered_callback_refuses_vmap_and_keeps_program_order_in_loops(cells, kernel):
    cells("%%jax_callback io --ordered --result None\ndef log(i): print(i, end=' ')")
    name, message, _ = kernel.run("jax.vmap(log)(jnp.arange(3))").error
    assert name == "ValueError" and "Cannot `vmap` ordered IO callback" in message
    ran = cells(
        "@jax.jit\n"
        "def f():\n"
        "    jax.lax.scan(lambda c, i: (c, log(i)), 0, jnp.arange(3))\n"
        "    jax.lax.fori_loop(3, 6, lambda i, c: (log(i), c)[1], 0)\n"
        "    jax.lax.while_loop(lambda i: i < 9, lambda i: (log(i), i + 1)[1], 6)\n"
        "    log(9)\n"
        "f()"
    )
    assert ran.text == "0 1 2 3 4 5 6 7 8 9 "
    assert [number for _, _, number in calls(ran)] == [3, 3, 3, 1]


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("jax.jit(f)(2.0)", "saw 2.0\n"),
        ("jax.vmap(f)(jnp.arange(3.0))", "saw 0.0\nsaw 1.0\nsaw 2.0\n"),
        ("jax.grad(f)(2.0)", "saw 2.0\n"),
        ("jax.jit(jax.value_and_grad(f))(2.0)", "saw 2.0\n"),
        ("jax.lax.scan(lambda c, x: (c, f(x)), 0, jnp.arange(2.0))", "saw 0.0\nsaw 1.0\n"),
        ("jax.lax.cond(False, f, lambda x: x, 2.0)", ""),
        ("jax.lax.while_loop(lambda x: f(x) < 2, lambda x: x + 1, 0.0)",
         "saw 0.0\nsaw 1.0\nsaw 2.0\n"),
    ],
)  # fmt: skip
def test_debug_callback_sees_run_time_values_everywhere(cells, program, text):
    """The callback is called with the run-time value each time the program reaches it."""
    ran = cells(
        "%%jax_callback debug --ordered\ndef show(x): print('saw', x)"
        if "vmap" not in program
        else "%%jax_callback debug\ndef show(x): print('saw', x)",
        "def f(x):\n    show(x)\n    return 1.0 * x",
        f"jax.clear_caches(); _ = {program}",
    )
    assert ran.text == text
    if text:
        assert sum(number for _, _, number in calls(ran)) == len(text.splitlines())
