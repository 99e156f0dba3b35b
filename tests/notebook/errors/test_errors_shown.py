"""In a real kernel, an error of a host function is shown once, as the user's, in its cell."""

import pytest

BAD = """
class Mute(Exception):
    def __str__(self): raise RuntimeError("no words")

BAD = {
    "mute": (Mute,), "nothing": (ValueError,), "half": (ValueError, "half \\ud800 of it"),
    "html": (ValueError, "<b>bold</b> & co"), "much": (ValueError, "x" * 1_000_000),
    "interrupt": (KeyboardInterrupt,),
}
def boom(x):
    kind, *args = BAD[which]
    if x == 0: raise kind(*args)
    return x
"""
CALLS = {
    "pure": "jaxcb.pure_callback(boom, x, x, vmap_method='sequential')",
    "io": "jaxcb.io_callback(boom, x, x)",
    "io ordered": "jaxcb.io_callback(boom, x, x, ordered=True)",
    "debug": "(jaxcb.debug_callback(boom, x), x)[1]",
}
PROGRAMS = {
    "eager": "f(jnp.float32(0))",
    "jit, first call": "jax.jit(f)(0.0)",
    "jit, third call": "g = jax.jit(f)\nfor x in (2., 1., 0.): g(x)",
    "ahead of time": "jax.jit(f).lower(0.0).compile()(0.0)",
    "vmap": "jax.jit(jax.vmap(f))(jnp.arange(3.0))",
    "scan": "jax.jit(lambda x: jax.lax.scan(lambda c, x: (c, f(x)), 0, x))(jnp.arange(3.0))",
}


@pytest.fixture
def bad(kernel):
    kernel.run("import jupyter_jaxcb as jaxcb\nwhich = 'html'" + BAD)
    return kernel


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_failure_is_shown_once_in_its_cell(bad, call):
    bad.run(f"def f(x): return {call}")
    for name, program in PROGRAMS.items():
        if name == "vmap" and "ordered" in call:
            continue
        ran = bad.run(program)
        assert ran.error[:2] == ("ValueError", "<b>bold</b> & co"), name
        shown = ran.error[2]
        assert shown.count("<b>bold</b> & co") == shown.count("raised by the") == 1, name
        assert "if x == 0: raise kind(*args)" in shown, name
        assert "site-packages" not in shown and "jupyter_jaxcb/stack/" not in shown, name
        assert "late" not in shown and ran.order.count("error") == 1, name
        assert "Traceback" not in ran.text, name
        assert bad.run("float(jax.jit(f)(5.0))").value == "5.0", name


JAXS = {
    "pure": "jax.pure_callback(boom, jax.typeof(x), x, vmap_method='sequential')",
    "io": "jax.experimental.io_callback(boom, jax.typeof(x), x)",
    "debug": "(jax.debug.callback(boom, x), x)[1]",
}


@pytest.mark.parametrize("call", JAXS.values(), ids=JAXS)
def test_failure_of_an_observed_callback_of_jax_is_shown_as_that_of_ours(bad, call):
    bad.run(f"def f(x): return {call}")
    for name, program in PROGRAMS.items():
        ran = bad.run(f"%%jax_record --jax\n{program}")
        assert ran.error[:2] == ("ValueError", "<b>bold</b> & co"), name
        shown = ran.error[2]
        assert shown.count("<b>bold</b> & co") == shown.count("raised by the jax ") == 1, name
        assert "if x == 0: raise kind(*args)" in shown and "bound at cell In[" in shown, name
        assert "site-packages" not in shown and "jupyter_jaxcb/stack/" not in shown, name
        assert ran.order.count("error") == 1, name


SCRIPT = """
import jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb
def boom(x):
    raise ValueError("no luck")
def f(x):
    return {call}
print("runs")
{program}
"""


@pytest.mark.kept
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_failure_in_a_script_is_shown_as_in_a_cell(kernel, tmp_path, call):
    for number, (name, program) in enumerate(PROGRAMS.items()):
        if name == "vmap" and "ordered" in call:
            continue
        script = tmp_path / f"script{number}.py"
        script.write_text(SCRIPT.format(call=call, program=program))
        for line in (f"%run {script}", f"%run -i {script}"):
            ran = kernel.run(line)
            assert ran.error[:2] == ("ValueError", "no luck"), name
            shown = ran.error[2]
            assert shown.count("ValueError: no luck") == shown.count("raised by the") == 1, name
            assert script.name in shown and 'raise ValueError("no luck")' in shown, name
            assert "site-packages" not in shown and "jupyter_jaxcb/stack/" not in shown, name
            assert "JaxRuntimeError" not in shown and ran.order.count("error") == 1, name


@pytest.mark.kept
def test_failure_of_a_tap_in_a_script_is_shown_as_in_a_cell(kernel, tmp_path):
    (tmp_path / "script.py").write_text(
        "from jupyter_jaxcb import host_callback as hcb\ndef boom(x, _):\n"
        "    raise ValueError('no luck')\nhcb.id_tap(boom, 1.0)\nhcb.barrier_wait()"
    )
    ran = kernel.run(f"%run {tmp_path / 'script.py'}")
    assert ran.error[:2] == ("ValueError", "no luck")
    assert ran.error[2].count("ValueError: no luck") == 1
    assert "CallbackException:" not in ran.error[2]


@pytest.mark.kept
def test_other_failures_of_a_script_are_shown_by_ipython(kernel, tmp_path):
    (tmp_path / "script.py").write_text("import sys\nif len(sys.argv) > 1: sys.exit(3)\n1 / 0")
    ran = kernel.run(f"%run {tmp_path / 'script.py'}")
    assert ran.error[:2] == ("ZeroDivisionError", "division by zero")
    assert kernel.run(f"%run {tmp_path / 'script.py'} x").error[0] == "SystemExit"


@pytest.mark.parametrize("options", ["", " --jax"])
def test_exception_of_an_eager_debug_callback_is_shown_alone_whatever_its_class(kernel, options):
    kernel.run("import jupyter_jaxcb as jaxcb\ndef boom(x): raise KeyError('no luck')")
    call = "jax.debug.callback" if options else "jaxcb.debug_callback"
    ran = kernel.run(f"%%jax_record{options}\n{call}(boom, 1.0)")
    assert ran.error[0] == "KeyError"
    assert "site-packages" not in ran.error[2] and "jupyter_jaxcb/stack/" not in ran.error[2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("which", "name", "message"),
    [
        ("mute", "Mute", "<its message raised RuntimeError>"),
        ("nothing", "ValueError", ""),
        ("half", "ValueError", "half ? of it"),
        ("much", "ValueError", "x" * 20_000 + "… (1,000,000 characters)"),
        ("interrupt", "KeyboardInterrupt", ""),
    ],
)
def test_error_that_a_kernel_cannot_send_is_replaced_or_shortened(bad, which, name, message):
    bad.run(f"which = {which!r}\ndef f(x): return {CALLS['pure']}")
    for program in PROGRAMS.values():
        ran = bad.run(program)
        assert ran.error[:2] == (name, message)
        assert "raise kind(*args)" in ran.error[2] and "site-packages" not in ran.error[2]
        assert "failed, unregistering" not in ran.text
    bad.run("which = 'html'")
    assert bad.run("f(jnp.float32(0))").error[0] == "ValueError"


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("jax.vmap(lambda x: jaxcb.pure_callback(boom, x, x))(jnp.arange(3.0))", "NotImplemented"),
        ("jax.vmap(lambda x: jaxcb.io_callback(boom, x, x, ordered=True))(jnp.ones(3))", "Value"),
        ("jax.grad(lambda x: jaxcb.pure_callback(boom, x, x))(1.0)", "Value"),
        ("jaxcb.pure(jaxcb.pure(boom, result='x'), result='x')", "Type"),
    ],
    ids=["vmap", "ordered", "grad", "registration"],
)
def test_refused_use_is_shown_at_the_users_line(bad, cell, name):
    """IPython always shows the last frame, so it must not be a frame of the package."""
    ran = bad.run(cell)
    assert ran.error[0].startswith(name)
    assert "In[" in ran.error[2]
    assert "jupyter_jaxcb/stack/" not in ran.error[2] and "site-packages" not in ran.error[2]


@pytest.mark.long
def test_error_shown_in_a_later_cell_names_the_cell_that_failed(bad):
    """A cell that is not recorded does not wait at its end."""
    bad.run("%jax_record off")
    bad.run(
        "slow = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda i, x: x @ x / 1000, x))\n"
        "x = jnp.zeros((1000, 1000))\n"
        f"def f(x): return {CALLS['pure']}\n"
        "g = jax.jit(lambda x: f(x[0, 0])).lower(x).compile()\n"
        "jax.block_until_ready(slow(x))"
    )
    ran = bad.run("import threading\nfailed = threading.Event()\n"
                  "def boom(x): failed.set(); raise KeyError('no luck')\n"
                  f"def f(x): return {CALLS['pure']}\n"
                  "g = jax.jit(lambda x: f(x[0, 0])).lower(x).compile()\n"
                  "y = g(slow(x))\nn = len(In) - 1\nfailed.wait(20)")  # fmt: skip
    assert ran.error is None
    number = bad.run("n").value
    assert bad.run("1 + 1").error is None
    ran = bad.run("float(y)")
    assert ran.error[0] == "KeyError"
    assert f"late: a host call of In [{number}]" in ran.error[2]


REFUSED = {
    "gradient without a rule": ("jax.jit(jax.grad(sin))(1.0)", "cannot differentiate sin@"),
    "vmap without a method": (
        "jax.vmap(lambda x: jaxcb.pure_callback(np.sin, x, x))(jnp.ones(3))",
        "cannot vmap sin@",
    ),
    "rule with a wrong result": (
        "wrong.defjvp(lambda primals, tangents: (wrong(*primals), jnp.ones(7)))\n"
        "jax.grad(wrong)(1.0)",
        "raised for the derivative of wrong, whose rule is <lambda>",
    ),
    "rule in a rule": (
        "outer.defvjp(lambda x: (sin(x), x), lambda x, ct: (sin(x) * ct,))\n"
        "jax.grad(jax.grad(outer))(1.0)",
        "cannot differentiate sin@",
    ),
    "second difference": ("jax.hessian(square)(1.0)", "cannot differentiate square twice"),
    "ordered under vmap": (
        "jax.vmap(lambda x: jaxcb.io_callback(np.sin, x, x, ordered=True))(jnp.ones(3))",
        "Cannot `vmap` ordered IO callback",
    ),
    "unknown method": (
        "jaxcb.pure(np.sin, vmap_method='parallel')",
        "unknown vmap method 'parallel'",
    ),
}


def test_refused_transformation_is_shown_at_the_users_line(kernel):
    """IPython shows the last frame even if it is hidden, so it must be the user's."""
    kernel.run(
        "import jupyter_jaxcb as jaxcb\n"
        "@jaxcb.pure(result='x')\ndef sin(x): return np.sin(x)\n"
        "@jaxcb.pure(result='x')\ndef wrong(x): return np.sin(x)\n"
        "@jaxcb.pure(result='x')\ndef outer(x): return np.sin(x)\n"
        "@jaxcb.pure(result='x', derivative='finite')\ndef square(x): return x * x"
    )
    for name, (program, message) in REFUSED.items():
        _, _, shown = kernel.run(program).error
        assert message in shown, name
        assert f"----> {1 + program.count(chr(10))} {program.splitlines()[-1]}" in shown, name
        assert "/jupyter_jaxcb/" not in shown and "/jax/" not in shown, name


@pytest.mark.long
def test_errors_of_jax_and_of_library_code_keep_their_frames(kernel):
    assert "/jax/" in kernel.run("jnp.ones(3) @ jnp.ones(4)").error[2]
    assert "/numpy/" in kernel.run("np.linalg.inv(np.ones(3))").error[2]


@pytest.mark.long
def test_unloading_leaves_jax_and_python_as_they_were(fresh_kernel):
    kernel = fresh_kernel()
    kernel.run(
        "import jax, sys, threading\nimport jax.numpy as jnp\nimport jupyter_jaxcb as jaxcb\n"
        "def now(): return (vars(jax.errors.JaxRuntimeError).get('__init__'), sys.excepthook,\n"
        "                   threading.excepthook, get_ipython().custom_exceptions)\n"
        "before = now()"
    )
    kernel.run("%load_ext jupyter_jaxcb")
    kernel.run("which = 'html'" + BAD)
    kernel.run(f"x = jnp.float32(0)\n{CALLS['pure']}")
    assert kernel.run("now() == before").value == "False"
    kernel.run("%unload_ext jupyter_jaxcb")
    assert kernel.run("now() == before").value == "True"


def test_unloading_in_a_cell_leaves_the_excepthook_after_a_failure_between_two_cells(in_process):
    """IPython has its own hook during a cell, and afterwards the one from before the cell."""
    found = in_process("""
        import contextlib, json, sys
        import jax
        from IPython.core.interactiveshell import InteractiveShell
        import jupyter_jaxcb as jaxcb

        shell = InteractiveShell.instance()
        shell.run_cell("%load_ext jupyter_jaxcb")
        failing = jax.jit(jaxcb.pure(lambda x: 1 / 0, result="x"))
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            failing(1.0).block_until_ready()
        shell.run_cell("%unload_ext jupyter_jaxcb")
        print(json.dumps(sys.excepthook is sys.__excepthook__))
    """)
    assert found.value is True
