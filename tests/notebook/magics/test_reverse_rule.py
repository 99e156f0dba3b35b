"""``--vjp FORWARD BACKWARD`` makes two functions of the cell the rule of the registered one."""

import itertools

import pytest

SIN = "def sin(x):\n    return np.sin(x)\n"
FORWARD = "def fwd(x):\n    return sin(x), x\n"
BACKWARD = "def bwd(x, ct):\n    return (ct * sin(x + jnp.pi / 2),)\n"
MAGIC = "%%jax_callback pure --result x"


@pytest.mark.parametrize(
    "parts", list(itertools.permutations([SIN, FORWARD, BACKWARD])), ids=lambda _: ""
)
def test_functions_of_the_rule_may_be_anywhere_in_the_cell(kernel, parts):
    ran = kernel.run(
        f"{MAGIC} --vjp fwd bwd\n{''.join(parts)}"
        "round(float(jax.grad(sin)(1.0)), 4), [type(f).__name__ for f in (sin, fwd, bwd)]"
    )
    assert ran.value == "(0.5403, ['PureCallback', 'function', 'function'])"
    assert kernel.run("'_jaxcb_register_rule_0' in globals()").value == "False"


def test_rule_in_terms_of_the_callback_gives_higher_orders(kernel):
    kernel.run(f"{MAGIC} --vjp fwd bwd\n{SIN}{FORWARD}{BACKWARD}")
    kernel.run("d = jax.grad(jax.grad(jax.grad(sin)))")
    assert kernel.run("round(float(jax.jit(d)(1.0)), 4)").value == "-0.5403"
    assert kernel.run("[round(float(y), 4) for y in jax.vmap(d)(jnp.arange(2.0))]").value == (
        "[-1.0, -0.5403]"
    )


def test_first_name_is_forward_and_second_is_backward(kernel):
    ran = kernel.run(f"{MAGIC} --vjp bwd fwd\n{SIN}{FORWARD}{BACKWARD}jax.grad(sin)(1.0)")
    name, message, _ = ran.error
    assert name == "TypeError"
    assert "bwd() missing 1 required positional argument" in message


def test_functions_of_a_rule_may_be_decorated(kernel):
    """A decorator may hide the name of the function."""
    kernel.run("def hide(f): return lambda *args: f(*args)")
    cell = f"{SIN}@hide\n{FORWARD}@hide\n{BACKWARD}"
    ran = kernel.run(f"{MAGIC} --vjp fwd bwd\n{cell}round(float(jax.grad(sin)(1.0)), 4)")
    assert ran.value == "0.5403"


def test_running_the_cell_again_with_another_rule_replaces_the_rule(kernel):
    kernel.run(f"{MAGIC} --vjp fwd bwd\n{SIN}{FORWARD}{BACKWARD}")
    other = "def bwd(x, ct):\n    return (7 * ct,)\n"
    ran = kernel.run(f"{MAGIC} --vjp fwd bwd\n{SIN}{FORWARD}{other}float(jax.grad(sin)(1.0))")
    assert ran.value == "7.0"


def test_registered_function_may_be_named_among_others(kernel):
    cell = f"{SIN}{FORWARD}{BACKWARD}def other(x): return x\n"
    ran = kernel.run(
        f"%%jax_callback pure sin --result x --vjp fwd bwd\n{cell}"
        "round(float(jax.grad(sin)(1.0)), 4), type(other).__name__"
    )
    assert ran.value == "(0.5403, 'function')"


USAGE = [
    ("pure --result x --vjp fwd bdw", "no function 'bdw' in this cell; did you mean 'bwd'?"),
    ("pure --result x --vjp fwd", "Name both functions of the rule: --vjp FORWARD BACKWARD"),
    ("pure --vjp fwd --result x", "Name both functions of the rule: --vjp FORWARD BACKWARD"),
    ("pure --result x --vjp fwd fwd", "--vjp takes two different functions, not fwd twice"),
    ("pure --result x --jvp fwd --vjp fwd bwd", "--jvp does not go with --vjp"),
    ("pure --result x --vjp fwd bwd --derivative finite", "--vjp does not go with --derivative"),
    ("pure --result x --jvp fwd --derivative finite", "--jvp does not go with --derivative"),
    ("io --result x --vjp fwd bwd", "--vjp does not go with io: it is for pure"),
    ("debug --vjp fwd bwd", "--vjp does not go with debug: it is for pure"),
    ("pure --result x --vpj fwd bwd", "did you mean '--vjp'?"),
    ("pure fwd --result x --vjp fwd bwd",
     "--vjp fwd bwd is for one function, but the cell registers none"),
    ("pure sin other --result x --vjp fwd bwd",
     "the cell registers sin, other. Name the function: %%jax_callback pure NAME --vjp fwd bwd"),
    ("pure --result x --vjp fwd bwd", "the cell registers sin, other"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), USAGE, ids=[line for line, _ in USAGE])
def test_error_for_a_wrong_rule_is_one_line_with_advice(kernel, line, message):
    kernel.run("sin = 'before'")
    cell = f"{SIN}{FORWARD}{BACKWARD}def other(x): return x"
    ran = kernel.run(f"%%jax_callback {line}\n{cell}")
    assert ran.text.startswith("UsageError: ")
    assert message in ran.text
    assert len(ran.text.strip().splitlines()) == 1
    assert kernel.run("sin").value == "'before'"


def test_rule_of_the_bessel_function_uses_its_recurrence(kernel):
    """The order is an integer, and the rule calls the callback itself."""
    cell = (
        "%%jax_callback pure --result z --vmap-method expand_dims --jvp jv_jvp\n"
        "def jv(v, z):\n"
        "    return scipy.special.jv(v, z)\n"
        "def jv_jvp(primals, tangents):\n"
        "    (v, z), (_, dz) = primals, tangents\n"
        "    return jv(v, z), dz * (jv(v - 1, z) - jv(v + 1, z)) / 2\n"
    )
    assert kernel.run(cell).error is None
    kernel.run("import functools\nz = np.float32([0.5, 1.5, 4.0])")
    for order in (1, 2, 3):
        kernel.run(
            "f = lambda z: jv(2, z)\n"
            f"for _ in range({order}): f = jax.grad(f)\n"
            f"right = scipy.special.jvp(2, z, {order})\n"
            "close = functools.partial(np.allclose, rtol=1e-4, atol=1e-6)"
        )
        values = "[f(1.5), jax.jit(f)(1.5)], jax.vmap(f)(z), jax.jit(jax.vmap(f))(z)"
        ran = kernel.run(f"[close(y, x) for y, x in zip(({values}), (right[1], right, right))]")
        assert ran.value == "[True, True, True]"
