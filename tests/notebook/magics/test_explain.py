"""``%jax_explain`` in a kernel and in a terminal: options, errors and displays."""

import pytest

DEFINE = """\
import jupyter_jaxcb as jaxcb
calls = []

@jaxcb.pure(result="x")
def a(x):
    calls.append("a")
    return x

@jaxcb.io(result="x")
def b(x):
    calls.append("b")
    return x

def f(x, n=1):
    a(x + 1)
    return b(x) * n

def g(x):
    return jnp.sin(x * a(jax.lax.stop_gradient(x)))

X = np.arange(3, dtype=np.float32)
print("defined")
"""


@pytest.fixture
def notebook(kernel):
    ran = kernel.run(DEFINE)
    assert ran.error is None
    assert not ran.traces
    return kernel


def called(notebook):
    return notebook.run("print(calls)").text.strip()


def test_status_of_each_callback_is_shown_without_a_call(notebook):
    ran = notebook.run("%jax_explain f(X)")
    assert ran.error is None
    assert ran.order == ["trace"]
    by_name = {site["function"]: site for site in ran.sites}
    assert {name: site["status"] for name, site in by_name.items()} == {"a": "unused", "b": "kept"}
    assert "1 call per run" in ran.trace["text/plain"]
    assert "nothing uses its result" in ran.trace["text/plain"]
    assert called(notebook) == "[]"


def test_explained_calls_are_not_in_the_host_trace_of_the_cell(notebook):
    ran = notebook.run("explained = %jax_explain f(X)\nprint('done')")
    assert ran.error is None
    assert ran.text == "done\n"
    assert not ran.traces
    ran = notebook.run("r = %jax_explain f(X)\ny = jax.jit(g)(X)\nm = %jax_explain --matrix f(X)")
    assert [site["function"] for site in ran.sites] == ["a"]
    assert called(notebook) == "['a']"


def test_matrix_is_a_table_in_text_and_html(notebook):
    ran = notebook.run("%jax_explain --matrix g(X)")
    ((data, _),) = ran.shown
    head = data["text/plain"].splitlines()[0].split()
    assert head == ["where", "source", "jit", "vmap", "grad", "hessian", "scan", "remat"]
    assert "3 calls" in data["text/plain"]
    assert "<table>" in data["text/html"]
    assert called(notebook) == "[]"


def test_cost_is_printed_but_not_saved_in_the_trace(notebook):
    ran = notebook.run("%jax_explain --cost f(X)")
    assert "jit_f (float32[3]): lowered in " in ran.text
    assert "compiled in " in ran.text
    assert "a, 0 host calls in the program" in ran.text
    assert "b, 1 host call in the program" in ran.text
    assert len(ran.traces) == 1
    assert "lowered in" not in ran.trace["text/plain"]  # the saved data must be the same every time


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("jax.vmap(f)(X)", "3 calls per run"),
        ("jax.grad(lambda x: g(x).sum())(X)", "1 call per run"),
        ("jax.jit(f, static_argnums=1)(X, 2)", "1 call per run"),
        ("f(*[X], **{'n': 2})", "1 call per run"),
        ("f(X, n=2)  # with a remark", "1 call per run"),
        ("  f( X )  ", "1 call per run"),
        ("(lambda x: f(x)) (X[:2])", "(2,) → (2,)"),
        ("f(jax.ShapeDtypeStruct((4,), np.float32))", "(4,) → (4,)"),
        ("f(x:=X)", "1 call per run"),
    ],
)
def test_any_call_expression_can_be_explained(notebook, call, words):
    ran = notebook.run(f"%jax_explain {call}")
    assert ran.error is None
    assert words in ran.trace["text/plain"]
    assert called(notebook) == "[]"


def test_callbacks_of_jax_are_explained_with_the_option_jax(notebook):
    notebook.run("def of_jax(x):\n    jax.pure_callback(lambda x: x, x, x)\n    return x")
    ran = notebook.run("%jax_explain --jax of_jax(X)")
    assert "unused" in ran.trace["text/plain"] and "jax pure" in ran.trace["text/plain"]
    ran = notebook.run("%jax_explain --matrix --jax of_jax(X)")
    ((data, _),) = ran.shown
    assert data["text/plain"].count("unused") == 2
    ran = notebook.run("%jax_explain of_jax(X)")  # nothing is observed any more
    assert ran.value.startswith("no jupyter_jaxcb callbacks; ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "name", "words"),
    [
        ("", "UsageError", "%jax_explain takes a call that is not executed"),
        ("--cost", "UsageError", "takes a call that is not executed: write %jax_explain f(x, y)"),
        ("f", "UsageError", "'f' is not a call. Write the function with its arguments"),
        ("f(X) + 1", "UsageError", "is not a call"),
        ("f(X", "UsageError", "is not a Python expression"),
        ("y = f(X)", "UsageError", "is not a Python expression"),
        ("--matrix", "UsageError", "takes a call that is not executed"),
        ("--matri f(X)", "UsageError", "unknown option --matri; did you mean '--matrix'?"),
        ("--cots f(X)", "UsageError", "unknown option --cots; did you mean '--cost'?"),
        ("--verbose f(X)", "UsageError", "unknown option --verbose"),
        ("unknown(X)", "NameError", "name 'unknown' is not defined"),
        ("f(unknown)", "NameError", "name 'unknown' is not defined"),
        ("X(3)", "TypeError", "it is not a function"),
        ("f()", "TypeError", "missing 1 required positional argument"),
        ("f(X, 1 / 0)", "ZeroDivisionError", "division by zero"),
        ("jax.grad(lambda x: a(x).sum())(X)", "ValueError", "cannot differentiate a"),
    ],
)
def test_line_that_cannot_be_explained_is_an_error_without_side_effects(
    notebook, line, name, words
):
    ran = notebook.run(f"%jax_explain {line}")
    if ran.error is None:  # a UsageError is printed
        assert name == "UsageError"
        assert words in ran.text
    else:
        assert ran.error[0] == name
        assert words in ran.error[1]
    assert not ran.traces
    assert called(notebook) == "[]"
    assert notebook.run("%jax_explain f(X)").error is None
