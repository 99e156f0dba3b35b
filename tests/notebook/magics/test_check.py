"""%jax_check, --save and JUPYTER_JAXCB=off in a real kernel."""

import pytest

REGISTER = """%%jax_callback pure --result x --vmap-method expand_dims
def scaled(x, m=1):
    return m * x / x.max()
"""
IMPORTS = "%load_ext jupyter_jaxcb\nimport jax, numpy as np, jupyter_jaxcb"


def test_check_shows_its_findings_and_its_calls_are_not_recorded(kernel):
    kernel.run("import numpy as np")
    kernel.run(REGISTER)
    ran = kernel.run("found = %jax_check scaled(np.float32([1, 2]), m=3)\nfound")
    assert ran.value.startswith("scaled · pure · 1 finding\n  ✕ vmap contract: ")
    assert ran.traces == [] and ran.error is None
    assert kernel.run("%jax_check scaled(np.float32([1, 2]))").value.startswith("scaled · pure")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "%jax_check takes a call: write %jax_check f(x, y)"),
        ("scaled", "is not a call. Write the function with its arguments, as in %jax_check scaled"),
    ],
)
def test_usage_error_explains_why_the_line_cannot_be_checked(line, words, kernel):
    kernel.run(REGISTER)
    assert words in kernel.run(f"%jax_check {line}").text


def test_recording_of_a_cell_is_saved(kernel, tmp_path):
    kernel.run("import numpy as np")
    kernel.run(REGISTER)
    path = tmp_path / "my cell.jaxcb"
    ran = kernel.run(f'%%jax_record r --save "{path}"\ny = scaled(np.float32([1, 2]))')
    assert ran.error is None and ran.text == ""
    loaded = f"jupyter_jaxcb.load({str(path)!r}).to_json() == r.to_json()"
    assert kernel.run(f"import jupyter_jaxcb; {loaded}").value == "True"


@pytest.mark.long
def test_cells_run_but_nothing_is_shown_or_recorded_when_switched_off(fresh_kernel):
    kernel = fresh_kernel()
    kernel.run("import os; os.environ['JUPYTER_JAXCB'] = 'off'")
    kernel.run(IMPORTS)
    assert kernel.run(REGISTER).error is None
    ran = kernel.run("scaled(np.float32([1, 2])).tolist()")
    assert (ran.value, ran.traces) == ("[0.5, 1.0]", [])
    ran = kernel.run("%%jax_record r\nscaled(np.float32([1, 2])).tolist()")
    assert (ran.value, ran.traces) == ("[0.5, 1.0]", [])
    assert kernel.run("len(r)").value == "0"
    assert "JUPYTER_JAXCB=off turns recording off" in kernel.run("%jax_record auto").text
    assert kernel.run("scaled(np.float32([1, 2])).tolist()").traces == []
