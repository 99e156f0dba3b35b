"""Cells that a cell runs belong to it."""

import pytest

DEFINE = "import jupyter_jaxcb as jaxcb\nstep = jaxcb.pure(lambda x: x, result='x')"
CALL = "jax.jit(lambda x: step(x))(1.0);"


@pytest.mark.parametrize("inner", ["", " ", "1 + 1", CALL], ids=["empty", "blank", "sum", "call"])
def test_calls_after_an_inner_cell_are_in_the_one_trace_of_the_outer_cell(kernel, inner):
    kernel.run(DEFINE)
    ran = kernel.run(f"get_ipython().run_cell({inner!r})\n{CALL}")
    assert len(ran.traces) == 1
    assert sum(site["calls"] for site in ran.sites) == 1 + (inner == CALL)
