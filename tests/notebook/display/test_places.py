"""A place has one notation: ``line 3`` in the cell itself, ``[5] line 3`` in another cell."""

import re

import jupyter_jaxcb as jaxcb

DEFINE = """import jax, jupyter_jaxcb as jaxcb
double = jaxcb.pure(lambda x: 2 * x, result="x")
def helper(x):
    return double(x)
f = jax.jit(helper)"""


def places(text):
    return re.findall(r"^  (\S.*?)  ", text, re.MULTILINE)


def test_printed_recording_numbers_the_other_cells_as_does_its_file(kernel, tmp_path):
    kernel.run(DEFINE)
    path = tmp_path / "run.jaxcb"
    record = "with jaxcb.record() as r:\n    f(1.0), double(2.0)\n"
    kernel.run(f"{record}r.recording.save({str(path)!r})")
    text = kernel.run("print(r.recording)").text
    (other, own) = places(text)
    assert re.fullmatch(r"\[[1-9]\d*\] line 4", other) and own == "line 2"
    assert places(str(jaxcb.load(path))) == [other, own]


def test_callers_in_other_cells_are_numbered(kernel):
    kernel.run(DEFINE)
    kernel.run("with jaxcb.record() as r:\n    helper(1.0)\n    helper(2.0)")
    found = places(kernel.run("print(r.recording)").text)
    assert [re.sub(r"\[\d+\]", "[n]", one) for one in found] == [
        "[n] line 4 (from line 2)",
        "[n] line 4 (from line 3)",
    ]


def test_what_a_notebook_saves_has_no_numbers(kernel):
    kernel.run(DEFINE)
    trace = kernel.run("f(1.0)").trace
    assert "line 4, another cell" in trace["text/plain"]
    assert not re.search(r"\[\d+\] line", f"{trace['text/plain']} {trace['text/html']}")


def test_warning_names_the_cell_of_the_line(kernel):
    kernel.run(f"import jax.numpy as jnp\n{DEFINE.replace('2 * x', 'jnp.sin(x)')}")
    printed = kernel.run("f(1.0)").text
    assert re.search(
        r"\(\[(\d+)\] line 5\) uses JAX in its host function: .*, \[\1\] line 3", printed
    )


def test_terminal_numbers_the_other_cells(terminal):
    printed = terminal("%load_ext jupyter_jaxcb", DEFINE, "f(1.0);")
    assert "  [2] line 4  " in printed
