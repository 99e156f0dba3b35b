"""After a cell runs again, programs call its new functions; other cells replace nothing."""

import pytest

FUNCTION = "@jaxcb.pure(result='x')\ndef step(x): return x + {}"
MAGIC = "%%jax_callback pure --result x\ndef step(x): return x + {}"
PROGRAM = "old = step\nprogram = jax.jit(lambda x: old(x))"
BOTH = "[float(program(0.)), float(old(0.)), float(step(0.))]"


@pytest.fixture
def kernel(kernel):
    kernel.run("import jupyter_jaxcb as jaxcb")
    return kernel


def reasons(ran):
    return [site["reason"] for site in ran.sites if "earlier registration" in site["reason"]]


@pytest.mark.parametrize("source", [FUNCTION, MAGIC], ids=["decorator", "magic"])
def test_programs_call_the_functions_of_a_cell_that_ran_again(kernel, source):
    kernel.run(source.format(1), cell="a")
    kernel.run(PROGRAM, cell="b")
    for n in ("1.0", "10.0", "100.0"):
        kernel.run(source.format(n), cell="a")
        ran = kernel.run(BOTH, cell="c")
        assert ran.value == f"[{n}, {n}, {n}]"
        assert not reasons(ran)


def test_rest_of_the_cell_calls_the_new_function(kernel):
    kernel.run(FUNCTION.format(1), cell="a")
    kernel.run(PROGRAM, cell="b")
    assert kernel.run(f"{FUNCTION.format(10)}\n{BOTH}", cell="a").value == "[10.0, 10.0, 10.0]"


@pytest.mark.parametrize("source", [FUNCTION, MAGIC], ids=["decorator", "magic"])
@pytest.mark.parametrize("cells", ["ab", (None, None)], ids=["two cells", "cells without an id"])
def test_another_cell_does_not_replace_the_function_and_the_trace_reports_it(kernel, source, cells):
    kernel.run(source.format(1), cell=cells[0])
    kernel.run(PROGRAM, cell="p")
    assert not reasons(kernel.run(BOTH, cell="q"))
    kernel.run(source.format(10), cell=cells[1])
    ran = kernel.run(BOTH, cell="q")
    assert ran.value == "[1.0, 1.0, 10.0]"
    assert len(reasons(ran)) == 2


def test_magic_cell_without_an_id_is_recognized_by_its_text(kernel):
    kernel.run("n = 1")
    cell = "%%jax_callback pure --result x\ndef step(x, n=n): return x + n"
    kernel.run(cell)
    kernel.run(PROGRAM)
    kernel.run("n = 10")
    kernel.run(cell)
    assert kernel.run(BOTH).value == "[10.0, 10.0, 10.0]"


TABLE = """
@jaxcb.pure(result='x')
def _(x): return x + 1
first = _
@jaxcb.pure(result='x')
def _(x): return x + 10
second = _
"""


def test_functions_with_the_same_name_are_replaced_in_order(kernel):
    for _ in range(3):
        kernel.run(TABLE, cell="a")
        ran = kernel.run("[float(f(0.)) for f in (first, second)]", cell="b")
        assert ran.value == "[1.0, 10.0]"
        assert not reasons(ran)


WRITE = (
    "with open('defines.py', 'w') as file: file.write('''import jupyter_jaxcb as jaxcb\n{}''')\n"
)


@pytest.mark.parametrize(
    "inside",
    [
        "get_ipython().run_cell('''{}''')",
        "%%capture\n{}",
        "exec('''{}''')",
        f"{WRITE}%run -i defines.py",
        f"{WRITE}%run defines.py",
    ],
    ids=["run_cell", "capture", "exec", "run -i", "run"],
)
def test_code_executed_by_the_cell_does_not_count_as_the_cell(kernel, inside, tmp_path):
    kernel.run(f"import os; os.chdir({str(tmp_path)!r})")
    assert not kernel.run(inside.format(FUNCTION.format(1)), cell="a").error
    kernel.run(PROGRAM, cell="b")
    kernel.run(inside.format(FUNCTION.format(10)), cell="a")
    assert kernel.run(BOTH, cell="c").value == "[1.0, 1.0, 10.0]"


def test_cell_that_loads_the_extension_may_run_again(kernel):
    kernel.run("%unload_ext jupyter_jaxcb", cell="z")
    source = f"%load_ext jupyter_jaxcb\n{FUNCTION}"
    kernel.run(source.format(1), cell="a")
    kernel.run(PROGRAM, cell="b")
    kernel.run(source.format(10), cell="a")
    assert kernel.run(BOTH, cell="c").value == "[10.0, 10.0, 10.0]"


def test_cell_that_unloads_the_extension_leaves_no_running_cell(kernel):
    kernel.run("%unload_ext jupyter_jaxcb", cell="a")
    running = "from tests.interface import running_cells; running_cells()"
    assert kernel.run(running, cell="b").value == "[]"
    kernel.run("%load_ext jupyter_jaxcb", cell="a")
    assert kernel.run("len(running_cells())", cell="b").value == "1"


MODULE = f"""import jupyter_jaxcb as jaxcb
{FUNCTION}
def plain(x): return x + {{}}
late = jaxcb.pure(plain, result='x')
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "reload",
    ["importlib.reload(defines)", "%autoreload 2", "%autoreload 3", "%autoreload all --full"],
)
def test_programs_call_the_functions_of_a_reloaded_module(kernel, reload, tmp_path):
    module = tmp_path / "defines.py"
    module.write_text(MODULE.format(1, 2))
    kernel.run(f"import importlib, sys; sys.path.insert(0, {str(tmp_path)!r})")
    kernel.run("sys.dont_write_bytecode = True")
    programs = "[float(program(0.)), float(of_plain(0.))]"
    try:
        if reload.startswith("%"):
            kernel.run(f"%load_ext autoreload\n{reload}", cell="r")
        kernel.run("import defines; step, late = defines.step, defines.late", cell="a")
        kernel.run(f"{PROGRAM}\nplain = late\nof_plain = jax.jit(lambda x: plain(x))", cell="b")
        assert kernel.run(programs).value == "[1.0, 2.0]"
        # Each version has another size, because autoreload may miss a change within one second.
        for n, m in ((10, 20), (100, 20), (100, 2000), (10000, 20000)):
            module.write_text(MODULE.format(n, m))
            if not reload.startswith("%"):
                kernel.run(reload, cell="r")
            ran = kernel.run(programs, cell="d")
            assert ran.value == f"[{float(n)}, {float(m)}]"
            assert not reasons(ran)
            ran = kernel.run("[float(defines.step(0.)), float(defines.late(0.))]", cell="e")
            assert ran.value == f"[{float(n)}, {float(m)}]"
    finally:
        kernel.run("%load_ext autoreload\n%autoreload 0")
        kernel.run("sys.path.pop(0); sys.modules.pop('defines', None)")
