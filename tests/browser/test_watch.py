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


STEP = """def step(w, x):
    y = jnp.sqrt(w - x)
    return w - 0.25, y.mean()"""


def values_at(cell, code):
    """Return the values beside a line of a cell's editor."""
    return cell.locator(".cm-line", has_text=code).locator(".jaxcb-badge-note")


def test_values_stand_beside_the_lines_of_every_cell_that_computed_them(notebook):
    cell = """%%jax_watch
for n in range(3):
    last, means = jax.lax.scan(step, 1.5 - n, jnp.ones((3, 2)))"""
    opened = notebook(LOAD + PROGRAM, STEP, cell, "x = 1")
    opened.run_and_wait()
    roots = values_at(opened.cell(1), "y = jnp.sqrt(w - x)")
    expect(roots).to_have_text("first NaN here: step 1, inner step 0")
    expect(roots).to_have_class(re.compile("jaxcb-tone-error jaxcb-badge-filled"))
    means = values_at(opened.cell(2), "last, means").last
    expect(means).to_have_text("means NaN from step 1")  # and follows from it
    expect(means).to_have_class(re.compile("jaxcb-tone-quiet"))
    last = values_at(opened.cell(2), "last, means")
    expect(last.first).to_have_text("last 0.75 → -1.25")
    expect(opened.cell(3).locator(".jaxcb-badge-note")).to_have_count(0)
    roots.hover()
    tip = opened.page.locator(".jaxcb-tip")
    expect(tip).to_contain_text("float32[2] · 9 times")
    expect(tip).to_contain_text("min 0 · mean 0.4024 · max 0.7071")
    expect(tip).to_contain_text("12 NaN")
    opened.cell(2).locator(".cm-line").last.click()
    opened.page.keyboard.press("End")
    opened.page.keyboard.type("  # changed")
    expect(opened.cell(2).locator(".jaxcb-badge-edited")).to_have_count(1)
    opened.run_and_wait(1)
    expect(roots).to_have_text("first NaN here: step 1, inner step 0")


def test_lines_of_the_table_and_of_the_first_bad_value_are_links(notebook, fresh_page):
    cell = "%%jax_watch\nlast, means = jax.lax.scan(step, 0.5, jnp.ones((3, 2)))"
    opened = notebook(LOAD + PROGRAM, STEP, cell)
    opened.run_and_wait()
    shown = opened.cell(2).locator(".jaxcb-watch")
    sentence = shown.get_by_role("alert").get_by_role("button")
    expect(sentence).to_contain_text("[2] line 2 of step: `jnp.sqrt(w - x)` gave NaN in step 0")
    sentence.click()
    expect(opened.cell(1).locator(".jaxcb-flash")).to_have_text(re.compile("y = jnp.sqrt"))
    assert [each.strip() for each in shown.locator("caption").all_text_contents()] == ["[2]", "[3]"]
    first = shown.locator("tr.jaxcb-watch-first")
    expect(first.get_by_role("cell").nth(1)).to_have_text("y")
    later = shown.locator("tr.jaxcb-watch-later").get_by_role("cell").nth(1)
    expect(later).to_have_text("step()[1]")
    shown.get_by_role("button", name="2", exact=True).last.click()
    expect(opened.cell(2).locator(".jaxcb-flash")).to_have_text(re.compile("last, means"))
    opened.page.set_viewport_size({"width": 700, "height": 800})
    plot = first.locator("summary > svg")
    expect(plot).to_be_in_viewport(ratio=1)
    fits = "node => node.scrollWidth <= node.clientWidth"
    opened.page.wait_for_function(fits, arg=shown.element_handle())  # once it is laid out again
