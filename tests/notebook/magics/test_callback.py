"""%%jax_callback registers the functions of a cell, or suggests what to type instead."""

import pytest

BESSEL = """%%jax_callback pure --result z --vmap-method expand_dims
def bessel(v, z):
    return scipy.special.jv(v, z)"""


def test_function_of_the_cell_is_a_callback_everywhere(kernel):
    assert kernel.run(BESSEL).error is None
    ran = kernel.run("np.allclose(jax.jit(bessel)(1, jnp.arange(5.)), "
                     "scipy.special.jv(1, np.arange(5)), atol=1e-6)")  # fmt: skip
    assert ran.value == "True"
    (site,) = ran.sites
    assert (site["function"], site["flavor"], site["calls"]) == ("bessel", "pure", 1)
    assert site["shapes"][0]["arrays"].startswith("v () int32, z (5,) float32 → ")


def test_rest_of_the_cell_runs_as_usual_and_its_last_value_is_shown(kernel):
    ran = kernel.run(
        "%%jax_callback pure double --result x\n"
        "import math\n"
        "SCALE = 2\n"
        "def helper(x): return SCALE * x\n"
        "def double(x):\n"
        "    'Twice x.'\n"
        "    return helper(x)\n"
        "print(type(helper).__name__, double.__doc__)\n"
        "float(double(4.0))"
    )
    assert ran.text == "function Twice x.\n"
    assert ran.value == "8.0"
    assert [site["line"] for site in ran.sites] == [9]  # the line of the magic is line 1


def test_all_functions_are_registered_unless_names_are_given(kernel):
    cell = "def f(x): return x\ndef g(x): return x"
    kernel.run(f"%%jax_callback pure --result x\n{cell}")
    assert kernel.run("f, g").value == "(<pure callback f>, <pure callback g>)"
    kernel.run(f"%%jax_callback pure g --result x\n{cell}")
    assert "<function __main__.f" in kernel.run("f").value
    assert kernel.run("g").value == "<pure callback g>"


@pytest.mark.parametrize("flavor", ["pure --result x", "io --result x", "io --ordered --result x"])
def test_compiled_programs_call_the_new_body(kernel, flavor):
    """Nothing is traced or compiled again."""
    kernel.run(f"%%jax_callback {flavor}\ndef host(x): return x + 1", cell="a")
    kernel.run("traces = []\n@jax.jit\ndef f(x):\n    traces.append(1)\n    return host(x)\nf(1.0)")
    kernel.run(f"%%jax_callback {flavor}\ndef host(x): return x + 10", cell="a")
    assert kernel.run("float(f(1.0)), len(traces)").value == "(11.0, 1)"


@pytest.mark.parametrize(("arrays", "kind"), [("numpy", "ndarray"), ("jax", "ArrayImpl")])
def test_option_arrays_decides_the_type_of_the_arguments(kernel, arrays, kind):
    kernel.run(
        f"%%jax_callback io --result x --arrays {arrays}\n"
        "def host(x):\n    print(type(x).__name__)\n    return x"
    )
    assert kernel.run("_ = jax.jit(host)(1.0)").text == f"{kind}\n"


USAGE = [
    ("pure --result z --vmap-metod x", "def f(z): return z",
     ["--vmap-metod", "did you mean '--vmap-method'"]),
    ("pur --result z", "def f(z): return z", ["unknown flavor 'pur'", "did you mean 'pure'"]),
    ("pure --result z", "x = 1", ["no function in this cell", "Put a def below it"]),
    ("pure g --result z", "def f(z): return z", ["no function 'g'", "It defines f"]),
    ("pure x --result z", "x = 1\ndef f(z): return z", ["no function 'x'"]),
    ("pure --result z --vmap-method squential", "def f(z): return z",
     ["unknown vmap method 'squential'", "did you mean 'sequential'", "broadcast_all"]),
    ("pure --result w", "def f(z): return z",
     ["'w', which is not defined", "parameters of f are z"]),
    ("pure --result z --vmap-method vectorized", "def f(z): return z",
     ["'vectorized'. Pass vmap_method= one of 'sequential',", "expand_dims"]),
    ("buffer --result z", "def f(z): pass",
     ["The first one, z, is the output: write def f(out, z)."]),
    ("--result z", "def f(z): return z", ["no flavor. Write %%jax_callback followed by one of"]),
    ("pure --result float64", "def f(z): return z / 2",
     ["float64 is not defined", "--result np.float32 for a scalar", "(z.shape, np.float32)"]),
    ("pure --result bfloat16", "def f(z): return z", ["--result jnp.bfloat16 for a scalar"]),
    ("pure --result w", "def f(z): return z\ndef g(w): return w",
     ["'w', which is not defined", "If f is not a callback, name the callbacks"]),
    ("pure --result 'z +'", "def f(z): return z", ["not a Python expression"]),
    ("pure", "def f(z): return z", ["pure needs --result", "from jaxtyping import Array, Float"]),
    ("io", "def f(z): return z", ["io needs --result", "--result None"]),
    ("debug --result z", "def f(z): return z",
     ["--result does not go with debug", "pure, io and buffer"]),
    ("tap --vmap-method sequential", "def f(z): return z",
     ["--vmap-method does not go with tap: a tap always gets the whole batch in one call."]),
    ("io --result z --ordered --vmap-method expand_dims", "def f(z): return z",
     ["vmap_method='expand_dims' cannot be combined with ordered=True: ordered calls",
      "Drop ordered=True for one call for the batch, or vmap_method= to keep the order."]),
    ("pure --result z --arrays jaxx", "def f(z): return z",
     ["unknown arrays 'jaxx'", "did you mean 'jax'"]),
    ("pure --result z --linear z w", "def f(z, w): return z",
     [". Write several parameters without spaces, as in --linear a,b."]),
    ("pure --result z --gradient \"('z', 'w')\"", "def f(z, w): return z, (w, z)",
     ["cannot use gradient=\"('z', 'w')\": name", "gradient='theta'"]),
    ("pure --result z --linear 1", "def f(z): return z", ["as in linear='b'"]),
    ("pure --ordered --result z", "def f(z): return z", ["--ordered does not go with pure"]),
    ('pure --result "x', "def f(x): return x", ["No closing quotation"]),
    ("pure --vmap_method=expand_dims --result x", "def f(x): return x",
     ["did you mean '--vmap-method'"]),
    ("pure --result (x, x)", "def f(x): return x", ["into quotes"]),
    ("tap --result x", "def f(x): pass", ["--result does not go with tap"]),
    ("tap --ordered", "def f(x): pass", ["--ordered does not go with tap: a tap is always in"]),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("line", "cell", "parts"), USAGE, ids=[line for line, _, _ in USAGE])
def test_error_for_a_wrong_option_is_one_paragraph_with_advice(kernel, line, cell, parts):
    """The cell does not run, so nothing of it is registered."""
    kernel.run("f = x = 'before'")
    ran = kernel.run(f"%%jax_callback {line}\n{cell}")
    assert ran.text.startswith("UsageError: ")
    assert all(part in ran.text for part in parts), ran.text
    assert len(ran.text.strip().splitlines()) == 1
    assert kernel.run("f, x").value == "('before', 'before')"
    assert kernel.run("'_jaxcb_register' in globals()").value == "False"


def test_syntax_error_is_shown_as_in_a_cell_without_the_magic(kernel):
    broken = "def f(z:\n    return z"
    ours = kernel.run(f"%%jax_callback pure --result z\n{broken}").error
    plain = kernel.run(f"\n{broken}").error
    assert ours[0] == plain[0] == "SyntaxError"
    # Frames, lines and carets are equal; the first line has the number of the cell.
    assert ours[2].splitlines()[1:] == plain[2].splitlines()[1:]


def test_exception_in_the_cell_is_shown_at_its_line(kernel):
    name, _, frames = kernel.run("%%jax_callback debug\ndef f(x): pass\n1 / 0").error
    assert name == "ZeroDivisionError"
    assert "----> 3 1 / 0" in frames
    assert "jupyter_jaxcb" not in frames
    assert kernel.run("'_jaxcb_register' in globals()").value == "False"


@pytest.mark.parametrize(
    ("options", "body", "used", "value"),
    [
        ("pure --result theta.shape[:0] --gradient theta", "return (theta**2).sum(), 2 * theta",
         "jax.grad(host)(jnp.float32([1, 2])).tolist()", "[2.0, 4.0]"),
        ("pure --result theta --linear theta --linear-self-adjoint", "return 3 * theta",
         "jax.grad(lambda x: host(x).sum())(jnp.ones(2)).tolist()", "[3.0, 3.0]"),
        ("pure --result theta --executor threads:2 --chunksize 2 --timeout 60",
         "return theta + 1", "jax.vmap(host)(jnp.arange(3.0)).tolist()", "[1.0, 2.0, 3.0]"),
        ("io --result theta --ordered", "return theta + 1",
         "jax.jit(lambda x: host(host(x)))(1.0).item()", "3.0"),
        ("debug --queued --on-full drop", "seen.append(float(theta))",
         "jax.jit(host)(1.0); jax.effects_barrier(); seen", "[1.0]"),
        ("debug --no-rematerialize", "seen.append(float(theta))",
         "jax.grad(jax.checkpoint(lambda x: (host(x), jnp.sin(x))[1]))(1.0); seen", "[1.0]"),
    ],
)  # fmt: skip
def test_options_do_in_a_cell_what_they_do_in_the_decorator(kernel, options, body, used, value):
    ran = kernel.run(f"%%jax_callback {options}\nseen = []\ndef host(theta): {body}")
    assert ran.error is None, ran.error
    assert kernel.run(used).value == value
