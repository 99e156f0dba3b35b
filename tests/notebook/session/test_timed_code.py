"""Code under other magics has the source and the lines of its cell."""

import pytest

DEFINE = """import jupyter_jaxcb as jaxcb
sine = jaxcb.pure(np.sin, result="x")"""
CALL = "jax.jit(lambda x: sine(x))(1.0)"
CELLS = {
    "a plain cell": (f"\nx = 1\n{CALL}", 2),  # IPython drops blank lines at the beginning
    "an expression": (f"%%time\n{CALL}", 2),
    "statements": (f"%%time\n\n\nx = 1\nx = 2\n{CALL};", 6),
    "a last expression": (f"%%time\nx = 1\n{CALL}", 3),
    "a loop": (f"%%time\nfor n in range(2):\n    {CALL}", 3),
    "a line magic": (f"x = 1\n%time y = {CALL}", 2),
    "several runs": (f"%%timeit -n 2 -r 1\n{CALL}", 2),
    "a setup": (f"%%timeit -n 2 -r 1 y = {CALL}\ny + 1\ny + 2", 1),
    "a string with a form feed": (f'%%time\nx = """\f\u2028"""\n{CALL}', 3),
    "a magic called by name": (
        f"x = 1\nget_ipython().run_cell_magic('time', '', '1 + 1\\n{CALL}')\nx = 2\nx = 3",
        2,
    ),
    "a magic below": (f"%%time\n%%jax_record\n{CALL}", 3),
    "a magic above": (f"%%jax_record\n%%time\n\n{CALL}", 4),
    "three magics": (f"%%jax_record\n%%time\n%%jax_record\nx = 1\n{CALL}", 5),
}


@pytest.mark.parametrize(("cell", "line"), CELLS.values(), ids=CELLS)
def test_call_site_has_the_line_and_the_source_of_its_cell(kernel, cell, line):
    kernel.run(DEFINE)
    for _ in range(2):  # IPython compiles the cell under the same name again
        ran = kernel.run(cell, cell="abc")
        (site,) = ran.sites
        assert (site["where"], site["line"]) == (f"line {line}", line)
        assert CALL in site["source"]
        (_, measured) = ran.traces[0]
        (only,) = next(iter(measured.values()))["sites"]
        assert only.get("cell_id", "abc") == "abc"


@pytest.mark.parametrize("magic", ["%time", "%timeit -n 1 -r 1"])
def test_calls_in_one_line_below_a_magic_are_two_sites(kernel, magic):
    kernel.run(DEFINE)
    ran = kernel.run(f"x = 1\n{magic} {CALL}; {CALL}")
    assert [site["line"] for site in ran.sites] == [2, 2]


def test_functions_defined_in_a_timed_cell_keep_their_lines(kernel):
    kernel.run(DEFINE)
    kernel.run("%%time\ndef f(x):\n    return sine(x)", cell="abc")
    (site,) = kernel.run("jax.jit(f)(1.0)", cell="def").sites
    assert (site["where"], site["source"]) == (
        "line 3, another cell",
        "return sine(x)",
    )


def test_error_below_time_names_its_line(kernel):
    ran = kernel.run("%%time\nx = 1\n1 / 0")
    assert "line 3" in ran.error[2]
    assert "----> 3 1 / 0" in ran.error[2]


def test_without_the_extension_ipython_compiles_as_before(kernel):
    names = "type(get_ipython().compile).__mro__[0].__call__.__module__"
    inside = kernel.run(names).value
    kernel.run("%unload_ext jupyter_jaxcb")
    assert "jupyter_jaxcb" in inside
    assert "jupyter_jaxcb" not in kernel.run(names).value
    assert "timed exec" in kernel.run("%%time\nx = 1\n1 / 0\nx = 2").error[2]
