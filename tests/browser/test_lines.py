"""The links of a saved host trace, in a notebook without a kernel that is edited after the run."""

import nbformat
import pytest
from playwright.sync_api import expect

from ._cells import DOUBLE, ELEMENTS, LOAD, USE

SELECTED = """() => {
  const { content } = window.jupyterapp.shell.currentWidget;
  const { line } = content.activeCell.editor?.getCursorPosition() ?? {};
  const text = content.activeCell.model.sharedModel.getSource().split('\\n')[line];
  return [content.activeCellIndex, text?.trim()];
}"""


@pytest.fixture(scope="module")
def _ran(desk):
    """A saved notebook with outputs."""
    with desk.opened("ran", [LOAD, DOUBLE, USE, ELEMENTS]) as opened:
        opened.run_and_wait()
        expect(opened.cell(2).locator(".jaxcb-view")).to_be_visible()
        opened.save()
        return opened.server, opened.server.saved(opened.name)


@pytest.fixture
def saved(_ran, desk, request):
    """A copy of the notebook, with its cell ids, without a kernel."""
    server, contents = _ran
    name = f"{request.node.name}.ipynb"
    nbformat.write(contents, server.root / name)
    with desk.showing(server, name) as notebook:
        notebook.end_kernel()
        notebook.cell(2).locator(".jaxcb-disclosure").click()
        yield notebook


def put_cursor(notebook, cell, line):
    """Put the cursor at the beginning of a line, counted from 0."""
    notebook.cell(cell).locator(".cm-line").nth(line).click()
    notebook.page.keyboard.press("Home")


def follow(view, line):
    view.get_by_role("button", name=f"line {line}", exact=True).click()


def wait_for_selected(notebook, cell, text):
    notebook.page.wait_for_function(
        f"expected => JSON.stringify(({SELECTED})()) === JSON.stringify(expected)",
        arg=[cell, text],
        timeout=20_000,
    )


def view_of(notebook, cell):
    return notebook.cell(cell).locator(".jaxcb-view")


def toast(notebook):
    return notebook.page.locator(".Toastify__toast")


@pytest.mark.long
def test_link_follows_its_line_in_an_edited_cell(saved):
    put_cursor(saved, 2, 0)
    saved.page.keyboard.type("# one\n# two\n")
    follow(view_of(saved, 2), 4)
    wait_for_selected(saved, 2, "return double(x + 1)")
    expect(toast(saved)).to_have_count(0)


@pytest.mark.long
def test_link_to_a_changed_line_goes_to_its_place_and_says_so(saved):
    put_cursor(saved, 2, 3)
    saved.page.keyboard.press("End")
    saved.page.keyboard.type(" * 2")
    follow(view_of(saved, 2), 4)
    wait_for_selected(saved, 2, "return double(x + 1) * 2")
    expect(toast(saved)).to_contain_text("Line 4 was changed or deleted after this run.")
    expect(toast(saved)).to_contain_text("It was: return double(x + 1)")
    toast(saved).get_by_role("button").first.click()
    expect(toast(saved)).to_have_count(0)


@pytest.mark.long
def test_link_follows_its_line_into_the_other_part_of_a_split_cell(saved):
    put_cursor(saved, 2, 3)
    saved.command("notebook:split-cell-at-cursor")
    expect(saved.cell(3)).to_contain_text("return double(x + 1)")
    own, other = (3, 2) if view_of(saved, 3).is_visible() else (2, 3)
    closed = view_of(saved, own).locator(".jaxcb-disclosure[aria-expanded=false]")
    if closed.count():  # JupyterLab 4.2 makes a new cell of this part
        closed.click()
    lines = {2: (3, "lost = double(x)"), 3: (4, "return double(x + 1)")}
    for cell, notices in ((own, 0), (other, 1)):
        line, text = lines[cell]
        follow(view_of(saved, own), line)
        wait_for_selected(saved, cell, text)
        expect(toast(saved)).to_have_count(notices)
    toast(saved).get_by_role("button").first.click()
    expect(toast(saved)).to_have_count(0)


@pytest.mark.long
def test_link_of_a_pasted_cell_stays_in_that_cell(saved):
    saved.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }"
    )
    for command in ("copy-cell", "paste-cell-below"):
        saved.command(f"notebook:{command}")
    saved.cell(3).locator(".jaxcb-disclosure").click()
    follow(view_of(saved, 3), 4)
    wait_for_selected(saved, 3, "return double(x + 1)")
    follow(view_of(saved, 2), 4)
    wait_for_selected(saved, 2, "return double(x + 1)")


@pytest.mark.long
def test_link_in_a_view_of_an_output_goes_to_the_notebook(saved):
    saved.page.evaluate(
        "() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }"
    )
    saved.command("notebook:create-output-view")
    view = saved.page.locator(".jp-LinkedOutputView .jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    follow(view, 4)
    wait_for_selected(saved, 2, "return double(x + 1)")
