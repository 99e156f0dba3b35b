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
    assert out.count("<lambda> · pure · 1 call") == 2


def test_cell_that_does_not_parse_does_not_disturb_the_hooks(f):
    ran = f.run("def g(x):\n  return x\n y = 3")
    assert ran.error[0] == "IndentationError"
    assert "callback" not in ran.text
    assert [site["calls"] for site in f.run("f(1.);").sites] == [1]


def test_program_of_an_earlier_registration_is_marked_as_stale(f):
    f.run("program = jax.jit(lambda x: f(x))\nprogram(1.);")
    f.run("%%jax_callback pure --result x --vmap-method expand_dims\ndef f(x): return x + 100")
    ran = f.run("float(program(1.))")
    assert ran.value == "2.0"
    assert "earlier registration" in ran.sites[0]["reason"]
    f.run(SETUP)  # the first interface: the program is up to date again
    assert f.run("program(1.);").sites[0]["reason"] == ""


def test_source_line_is_taken_from_the_cell_that_ran(f):
    assert "first" in f.run("f(1.)  # first").trace["text/plain"]
    assert "second" in f.run("f(1.)  # second").trace["text/plain"]


@pytest.mark.parametrize(
    ("cell", "where"),
    [
        ("%%capture c\nf(2.0)", "line 2"),
        ("get_ipython().run_cell('f(2.0)');", "line 1"),
        ("%time y = f(2.0)", "<timed exec>:1"),
    ],
)
def test_code_run_by_a_magic_belongs_to_this_cell(f, cell, where):
    (site,) = f.run(cell).sites
    assert "another cell" not in site["where"]
    assert site["where"] == where or site["where"] == "line 1"


@pytest.mark.parametrize("body", ["return 5", "await something()", "def g(x):\n  return x\n y = 3"])
def test_syntax_errors_of_every_stage_show_no_internal_frames(kernel, body):
    name, _, frames = kernel.run(f"%%jax_record\n{body}").error
    assert name == "SyntaxError"
    assert "jupyter_jaxcb" not in frames and "codeop" not in frames


def test_result_may_use_names_defined_in_the_cell(kernel):
    ran = kernel.run(
        "%%jax_callback pure g --result "
        '"jax.tree.map(lambda a: a, jax.ShapeDtypeStruct((N,), x.dtype))"\n'
        "from math import pi as PI\n"
        "N = 3\n"
        "def g(x): return np.full(N, x)\n"
        "g(2.0).tolist()"
    )
    assert ran.value == "[2.0, 2.0, 2.0]"


def test_semicolon_silences_the_last_value_of_a_magic(f):
    for magic in ("%%jax_record\n", "%%jax_callback pure g --result x\ndef g(x): return x\n"):
        ran = f.run(f"{magic}f(2.);")
        assert ran.value is None
        assert len(ran.traces) == 1


def test_dollar_in_a_result_is_not_expanded(kernel):
    kernel.run("x = 5")
    assert (
        kernel.run('%%jax_callback pure --result "x"\ndef g(x): return x\nfloat(g(2.0))').value
        == "2.0"
    )
    assert "UsageError" in kernel.run('%%jax_callback pure --result "$x"\ndef g(x): return x').text


def test_recorded_cell_shows_its_trace_last_even_if_recording_is_off(f):
    f.run("%jax_record off")
    assert f.run("%%jax_record\nf(2.)").order == ["execute_result", "trace"]
    assert f.run("%%jax_record\nf(2.)\n1 / 0").order == ["error", "trace"]
    f.run("%jax_record auto")


def test_repr_of_recordings_describes_them(f):
    assert f.run("%%jax_record r\n1 + 1").value == "2"
    assert f.run("r").traces == [] and f.run("r").value == "no host calls"
    f.run("import jupyter_jaxcb\nwith jupyter_jaxcb.record() as recorded: f(1.)")
    assert f.run("print(recorded)").text == "<Recording of 1 host call from 1 site>\n"
    assert [site["calls"] for site in f.run("recorded").sites] == [1]


def test_two_calls_on_one_line_are_distinguished_by_their_column(f):
    assert [s["where"] for s in f.run("[f(1.), f(2.)];").sites] == ["line 1:2", "line 1:9"]


def test_sites_that_are_not_listed_are_counted(f):
    ran = f.run("\n".join(["f(1.)"] * 100))
    assert len(ran.sites) == 100
    assert "40 more call sites are not listed" in ran.trace["text/plain"]
    assert "40 more call sites are not listed" in ran.trace["text/html"]


def test_error_for_missing_arguments_names_the_function(f):
    assert f.run("f()").error[1] == "f() missing a required argument: 'x'"
