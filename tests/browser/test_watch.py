"""A watched cell shows the values of its variables while it runs, and as saved."""

import re

from playwright.sync_api import expect

from ._cells import LOAD

PROGRAM = """
import jax.numpy as jnp, os, time
def waits_until_it_exists(path):
    while not os.path.exists(path):
        time.sleep(0.01)
"""


def test_watched_cell_shows_values_while_it_runs_and_a_plot_on_click_and_is_saved(
    notebook, tmp_path
):
    path = tmp_path / "go"
    loop = f"""%%jax_watch
for n in range(4):
    y = jnp.log(jnp.float32(2 - n))
    if n == 2:
        waits_until_it_exists({str(path)!r})"""
    opened = notebook(LOAD + PROGRAM, loop)
    opened.run(0, 1)
    shown = opened.cell(1).locator(".jaxcb-watch")
    row = shown.get_by_role("row").filter(has=opened.page.get_by_text("y", exact=True))
    expect(row.get_by_role("cell").nth(3)).to_have_text("3")
    progress = opened.cell(1).get_by_role("status")
    expect(progress).to_have_text(re.compile(r"step 2, inner step [\d,]+"))
    path.touch()
    opened.wait(1)
    expect(progress).to_have_count(0)
    expect(row.get_by_role("cell").nth(3)).to_have_text("4")
    expect(shown.get_by_role("alert")).to_contain_text("gave NaN in step 3")
    plot = row.locator("details > svg")
    expect(plot).to_be_hidden()
    row.locator("summary").click()
    expect(plot).to_be_visible()
    expect(plot).to_contain_text("step 3")
    opened.save()
    (output,) = opened.server.saved(opened.name).cells[1].outputs
    assert "gave NaN in step 3" in output.data["text/html"]
    assert "gave NaN in step 3" in output.data["text/plain"]
