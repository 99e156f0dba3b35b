"""The declared results of a cell: by annotation, by a dry run, or cast; and derivatives."""


def test_error_names_the_function_without_an_annotation_before_the_cell_runs(kernel):
    kernel.run("from jaxtyping import Array, Float")
    ran = kernel.run(
        "%%jax_callback pure\n"
        "ran = True\n"
        "def f(x) -> Float[Array, '']: return x\n"
        "def g(x): return x"
    )
    assert "pure needs --result: what g returns" in ran.text
    assert kernel.run("'ran' in globals()").value == "False"


def test_infer_runs_the_function_on_zeros(kernel):
    cell = (
        "%%jax_callback pure --result infer\ndef sums(x):\n    return {'sum': x.sum(), 'n': len(x)}"
    )
    assert kernel.run(cell).error is None
    assert kernel.run("jax.jit(sums)(jnp.arange(3.0))['sum'].item()").value == "3.0"
    ran = kernel.run("%%jax_callback io --result infer\ndef log(x):\n    return x")
    assert 'cannot use result="infer" for an io callback' in str(ran.error)


def test_cast_allows_results_that_lose_information(kernel):
    body = "def big(x):\n    return np.int64(2**40 + 7)"
    kernel.run(f"%%jax_callback pure --result x --cast\n{body}")
    assert kernel.run("int(big(1))").value == "7"
    kernel.run(f"%%jax_callback pure --result x\n{body}")
    assert "does not fit the declared int32" in str(kernel.run("int(big(1))").error)
    ran = kernel.run("%%jax_callback debug --cast\ndef show(x): pass")
    assert "--cast does not go with debug: it is for pure and io" in ran.text


RULE = (
    "def sin_jvp(primals, tangents):\n    return sin(*primals), jnp.cos(*primals) * tangents[0]\n"
)
SIN = "def sin(x):\n    return np.sin(x)\n"


def test_option_jvp_names_a_rule_in_the_cell(kernel):
    for body in (SIN + RULE, RULE + SIN):
        ran = kernel.run(
            f"%%jax_callback pure --result x --jvp sin_jvp\n{body}"
            "float(jax.grad(sin)(0.0)), type(sin_jvp).__name__"
        )
        assert ran.value == "(1.0, 'function')"
    assert kernel.run("round(float(jax.grad(jax.grad(sin))(1.0)), 4)").value == "-0.8415"


def test_option_derivative_uses_finite_differences(kernel):
    kernel.run(f"%%jax_callback pure --result x --derivative finite\n{SIN}")
    assert kernel.run("round(float(jax.grad(sin)(0.0)), 3)").value == "1.0"
    ran = kernel.run(f"%%jax_callback pure --result x --derivative exact\n{SIN}")
    assert "define a rule with defjvp or defvjp" in ran.text


def test_scalars_are_declared_by_their_type_and_elements_by_their_index(kernel):
    kernel.run("%%jax_callback pure --result (float,z[0])\ndef pair(z): return z.sum(), z[0]")
    got = kernel.run("[str(x) for x in jax.jit(pair)(jnp.arange(3.0))]")
    assert got.value == "['3.0', '0.0']"
    assert kernel.run("%%jax_callback pure --result int\ndef n(z): return z.size").error is None
    assert kernel.run("int(n(jnp.ones(4)))").value == "4"
