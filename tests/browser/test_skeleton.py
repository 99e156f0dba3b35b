"""The JSON of the walking skeleton, in JupyterLab."""

from playwright.sync_api import expect

CELL = """import jax, jax.numpy as jnp, numpy as np
from jupyter_jaxcb import skeleton
@skeleton.pure(result="x")
def sine(x):
    return np.sin(x)
with skeleton.record() as r:
    jax.block_until_ready(jax.jit(jax.vmap(sine))(jnp.arange(3.0)))
    jax.block_until_ready(jax.jit(lambda x: (sine(x), x)[1])(1.0))
r.recording"""


def test_each_line_of_code_is_a_row_with_the_sentences_that_python_wrote(notebook):
    lab = notebook(CELL)
    lab.run_and_wait(0)
    table = lab.cell(0).locator(".jaxcb-skeleton")
    expect(table.locator("caption")).to_have_text("3 host calls · 1 line to look at")
    rows = table.locator("tr")
    expect(rows).to_have_count(2)
    cells = rows.nth(0).locator("td")
    expect(cells.nth(0)).to_have_text("sine · pure")
    expect(cells.nth(1)).to_have_text("line 7")
    expect(cells.nth(2)).to_have_text("● 3 calls")
    expect(cells.nth(3)).to_have_text("() → () · vmap 3, sequential")
    expect(rows.nth(0).locator(".jaxcb-bars span")).to_have_count(3)
    expect(rows.nth(1)).to_contain_text(
        "0 calls instead of 1: nothing uses its result · use the result, or register it with @io"
    )
    expect(table.locator("tfoot")).to_have_count(0)
