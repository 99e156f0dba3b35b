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


def test_first_name_is_forward_and_second_is_backward(kernel):
    ran = kernel.run(f"{MAGIC} --vjp bwd fwd\n{SIN}{FORWARD}{BACKWARD}jax.grad(sin)(1.0)")
    name, message, _ = ran.error
    assert name == "TypeError"
    assert "bwd() missing 1 required positional argument" in message


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
