"""Unusual uses of a notebook, each of which once failed."""

import pytest

SETUP = """%%jax_callback pure --result x
def f(x):
    if np.any(x > 100): raise ValueError("no luck")
    return x + 1"""


@pytest.fixture
def f(kernel):
    kernel.run(SETUP)
    return kernel


@pytest.mark.parametrize("handler", ['raise ValueError("mine") from e', 'int("mine")'])
def test_exception_raised_while_handling_a_host_error_is_shown(f, handler):
    ran = f.run(f"try:\n    jax.jit(f)(101.)\nexcept Exception as e:\n    {handler}")
    assert ran.error[0] == "ValueError"
    assert "mine" in ran.error[1]


def test_traceback_has_the_users_line_that_led_to_the_failure(f):
    """It is above the frames of the host function, if that has any."""
    f.run("def model(x):\n    return jax.jit(f)(x)")
    _, _, frames = f.run("y = 1\nmodel(101.)").error
    assert "----> 2 model(101.)" in frames
    assert "----> 2     return jax.jit(f)(x)" in frames
    assert 'raise ValueError("no luck")' in frames
    f.run("%%jax_callback pure --result x\ndef wrong(x): return np.zeros(7)")
    _, _, frames = f.run("y = 1\njax.jit(wrong)(1.)").error
    assert "----> 2 jax.jit(wrong)(1.)" in frames
    assert "site-packages" not in frames


@pytest.mark.long
def test_extension_loaded_by_configuration_shows_every_cell(in_process, tmp_path):
    script = tmp_path / "configured.py"
    script.write_text(
        "from traitlets.config import Config\n"
        "from IPython.terminal.ipapp import TerminalIPythonApp\n"
        "app = TerminalIPythonApp.instance()\n"
        "app.initialize(['--no-banner', '--colors=nocolor', '--ext=jupyter_jaxcb'])\n"
        "for cell in ('import jupyter_jaxcb as j; f = j.pure(lambda x: x, result=lambda x: x)',\n"
        "             'f(1.0)', 'f(2.0)'):\n"
        "    app.shell.run_cell(cell)\n"
    )
    out = in_process(script, IPYTHONDIR=str(tmp_path), HOME=str(tmp_path)).stdout
    assert out.count("f · pure · 1 call") == 2


def test_program_of_an_earlier_registration_is_marked_as_stale(f):
    f.run("program = jax.jit(lambda x: f(x))\nprogram(1.);")
    f.run("%%jax_callback pure --result x --vmap-method expand_dims\ndef f(x): return x + 100")
    ran = f.run("float(program(1.))")
    assert ran.value == "2.0"
    assert "earlier registration" in ran.sites[0]["reason"]
    f.run(SETUP)  # the first interface: the program is up to date again
    assert f.run("program(1.);").sites[0]["reason"] == ""


@pytest.mark.parametrize("body", ["return 5", "await something()", "def g(x):\n  return x\n y = 3"])
def test_syntax_errors_of_every_stage_show_no_internal_frames(kernel, body):
    name, _, frames = kernel.run(f"%%jax_record\n{body}").error
    assert name == "SyntaxError"
    assert "jupyter_jaxcb" not in frames and "codeop" not in frames
