"""Badges at the end of source lines, and the side panel."""

import re

import nbformat
import pytest
from playwright.sync_api import expect

from ._cells import DOUBLE, ELEMENTS, LOAD, USE

CELLS = (LOAD, DOUBLE, USE, ELEMENTS)


@pytest.fixture
def used(notebook):
    """A notebook that has run and that the test may change."""
    opened = notebook(*CELLS)
    opened.run_and_wait(0, 1, 2, 3)
    return opened


@pytest.fixture(scope="module")
def _shared(desk):
    """A notebook that has run, for all tests that do not change it."""
    with desk.opened("shared", CELLS) as opened:
        opened.run_and_wait(0, 1, 2, 3)
        yield opened


@pytest.fixture
def shared(_shared):
    """`_shared`, in front of the notebooks that other tests opened."""
    _shared.open()
    return _shared


def badges(notebook, number):
    return notebook.cell(number).locator(".jaxcb-badge-note")


def line_of(badge):
    return badge.locator("xpath=ancestor::*[contains(@class, 'cm-line')]")


def panel(notebook):
    notebook.command("jupyter-jaxcb:open-panel")
    return notebook.page.locator("#jupyter-jaxcb-panel")


@pytest.mark.long
def test_every_line_shows_its_status(shared):
    expect(badges(shared, 1)).to_contain_text("pure callback · 2 calls")
    lost, kept = badges(shared, 2).nth(0), badges(shared, 2).nth(1)
    expect(lost).to_contain_text("⚠ unused: nothing uses its result")
    expect(kept).to_have_text(re.compile(r"● 1 call · [\d.]+ .s · \(\) → \(\)"))
    expect(badges(shared, 3)).to_contain_text("(5,) → (5,)")
    expect(line_of(lost)).to_contain_text("lost = double(x)")


@pytest.mark.long
def test_calls_in_workers_show_the_work_and_the_wall_time_that_it_took(notebook):
    callback = """%%jax_callback pure --result x --executor threads:4
def simulate(x):
    threading.Event().wait(0.02)
    return x"""
    opened = notebook(LOAD, callback, "jax.vmap(simulate)(jnp.arange(16.0)).block_until_ready();")
    opened.run_and_wait()
    work = re.compile(r"● 16 calls · [\d.]+ .?s of work in [\d.]+ .?s · ")
    expect(badges(opened, 2)).to_have_text(work)


@pytest.mark.long
def test_edited_cell_has_dimmed_badges_until_the_edit_is_undone(used):
    dimmed = used.cell(2).locator(".jaxcb-badge-edited")
    expect(dimmed).to_have_count(0)
    used.cell(2).locator(".cm-line").first.click()
    used.page.keyboard.press("Home")
    used.page.keyboard.type("# new\n")
    expect(dimmed).to_have_count(2)
    expect(line_of(badges(used, 2).nth(0))).to_contain_text("lost = double(x)")
    for _ in range(3):
        used.page.keyboard.press("Control+z")
        if used.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel"
            ".source.startsWith('@jax')"
        ):
            break
    expect(dimmed).to_have_count(0)
    expect(badges(used, 2)).to_have_count(2)


@pytest.mark.long
def test_badges_can_be_turned_off_and_on(shared):
    expect(badges(shared, 2)).to_have_count(2)
    shared.command("jupyter-jaxcb:toggle-badges")
    expect(badges(shared, 2)).to_have_count(0)
    shared.command("jupyter-jaxcb:toggle-badges")
    expect(badges(shared, 2)).to_have_count(2)


@pytest.mark.long
def test_badge_of_a_long_line_is_visible_however_far_the_code_is_scrolled(notebook):
    opened = notebook(LOAD, DOUBLE, f"y = double(1.0){' + 0.0' * 80}")
    opened.run_and_wait()
    scroller, badge = opened.cell(2).locator(".cm-scroller"), badges(opened, 2)
    assert scroller.evaluate("node => node.scrollWidth > 2 * node.clientWidth")
    expect(badge).to_be_visible()

    def right_of_badge():
        left, width = scroller.bounding_box()["x"], scroller.bounding_box()["width"]
        box = badge.bounding_box()
        assert box["x"] > left
        return left + width - box["x"] - box["width"]

    for position in (0, 200, 100_000):
        scroller.evaluate("(node, left) => { node.scrollLeft = left; }", position)
        assert 0 <= right_of_badge() < 40
    end = opened.cell(2).locator(".cm-line > :not(.jaxcb-badge)").last.bounding_box()
    assert badge.bounding_box()["x"] >= end["x"] + end["width"]


@pytest.mark.long
def test_tooltip_of_a_badge_shows_the_reason(shared):
    badges(shared, 2).nth(0).hover()
    expect(shared.page.locator(".jaxcb-tip")).to_contain_text("use an io callback")


@pytest.mark.long
def test_tooltip_of_a_call_under_vmap_draws_its_shapes(shared):
    badges(shared, 3).hover()
    diagram = shared.page.locator(".jaxcb-tip").get_by_role("img")
    expect(diagram).to_have_accessible_name(
        "1 call for 5 elements. x: 5 batched; one call receives (5,) float32. "
        "result: 5 batched; and must return (5,) float32"
    )
    assert diagram.bounding_box()["width"] > 150


def test_click_on_a_badge_opens_the_host_trace_of_the_cell_at_its_site(shared):
    row = shared.cell(2).locator(".jaxcb-site[aria-current]")
    badges(shared, 2).nth(1).click()
    expect(row).to_be_focused()
    expect(row).to_contain_text("return double(x + 1)")
    badges(shared, 2).nth(0).click()
    expect(row).to_be_focused()
    expect(row).to_contain_text("lost = double(x)")
    expect(shared.page.locator("#jupyter-jaxcb-panel")).to_be_hidden()


def test_line_at_which_a_host_function_raised_has_the_exception(notebook):
    raises = DOUBLE.replace("return 2 * x", "raise ValueError('no luck')")
    opened = notebook(LOAD, raises, "jax.jit(double)(1.0)", "1")
    opened.run_and_wait(0, 1, 2)
    badge = badges(opened, 1).filter(has_text="no luck")
    expect(badge).to_have_text("✕ ValueError: no luck")
    expect(line_of(badge)).to_contain_text("raise ValueError")
    opened.run_and_wait(3)
    expect(badge).to_have_count(1)
    headline = opened.cell(2).locator(".jaxcb-summary-part").first
    headline.click()
    expect(opened.cell(2).locator(".jaxcb-site[aria-current]")).to_be_focused()


def test_panel_is_the_second_action_of_a_badge_with_shift_the_tooltip_or_a_command(shared):
    marked = shared.page.locator("#jupyter-jaxcb-panel .jaxcb-callsite[aria-current]")
    badges(shared, 2).nth(0).click(modifiers=["Shift"])
    expect(marked).to_contain_text("lost = double(x)")
    badges(shared, 2).nth(1).hover()
    shared.page.locator(".jaxcb-tip").get_by_role("button", name="Show in the panel").click()
    expect(marked).to_contain_text("return double(x + 1)")
    shared.cell(3).locator(".cm-line").first.click()
    shared.command("jupyter-jaxcb:show-line-in-panel")
    expect(marked).to_contain_text("jax.vmap(double)")
    shared.command("jupyter-jaxcb:show-line")
    expect(shared.cell(3).locator(".jaxcb-site[aria-current]")).to_be_focused()


def test_badge_of_a_line_whose_trace_is_far_below_scrolls_to_it(notebook):
    long = "\n".join(["print('a line')"] * 150)
    opened = notebook(LOAD, DOUBLE, "def g(x):\n    return double(x)", *[long] * 2, "g(1.0)")
    opened.run_and_wait()
    opened.cell(2).scroll_into_view_if_needed()
    badges(opened, 2).click()
    row = opened.cell(5).locator(".jaxcb-site[aria-current]")
    expect(row).to_be_focused()
    expect(row).to_be_in_viewport()


def test_much_printed_text_scrolls_so_that_the_trace_stays_near_its_code(notebook):
    code = "for i in range(2000): print('line', i)\ndouble(1.0)"
    opened = notebook(LOAD, DOUBLE, code, code.replace("double(1.0)", ""))
    opened.run_and_wait()
    cell = opened.cell(2)
    cell.locator(".jp-InputArea").scroll_into_view_if_needed()
    expect(cell.locator(".jp-InputArea")).to_be_in_viewport()
    expect(cell.locator(".jaxcb-summary")).to_be_in_viewport()
    expect(cell.locator(".jp-RenderedText").first).to_contain_text("line 1999")
    height = "text => text.clientHeight"
    assert opened.cell(3).locator(".jp-RenderedText").first.evaluate(height) > 20_000


@pytest.mark.long
def test_panel_lists_callbacks_and_links_to_their_sites(shared):
    side_panel = panel(shared)
    expect(side_panel).to_contain_text("double")
    expect(side_panel).to_contain_text("vmap_method=expand_dims")
    expect(side_panel).to_contain_text("2 calls")
    expect(side_panel).to_contain_text("1 elided")
    expect(side_panel.locator(".jaxcb-callsite")).to_have_count(3)
    side_panel.locator(".jaxcb-callsite-jump").nth(1).click()
    shared.page.wait_for_function(
        "() => { const content = window.jupyterapp.shell.currentWidget.content;"
        "return content.activeCellIndex === 2"
        " && content.activeCell.editor.getCursorPosition().line === 3; }"
    )


@pytest.mark.long
def test_restarted_kernel_has_no_callbacks(used):
    side_panel = panel(used)
    expect(side_panel.locator(".jaxcb-callsite")).to_have_count(3)
    used.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    expect(side_panel).to_contain_text("%load_ext jupyter_jaxcb")
    saved = used.cell(2).locator(".jaxcb-badge-saved .jaxcb-badge-note")  # of the host traces
    expect(saved).to_have_count(2)
    expect(saved.nth(0)).to_contain_text("unused")
    saved.nth(0).hover()
    expect(used.page.locator(".jaxcb-tip")).to_contain_text("From a saved host trace")
    saved.nth(1).click()
    expect(used.cell(2).locator(".jaxcb-site[aria-current]")).to_be_focused()
    used.run_and_wait(0, 1)
    expect(side_panel).to_contain_text("double")
    expect(saved).to_have_count(2)
    used.run_and_wait(2)
    expect(saved).to_have_count(0)
    expect(badges(used, 2)).to_have_count(2)


@pytest.mark.long
def test_panel_follows_the_visible_notebook(used, notebook):
    side_panel = panel(used)
    expect(side_panel).to_contain_text("double")
    other = notebook(LOAD, DOUBLE.replace("double", "twice"), name="other")
    expect(side_panel).not_to_contain_text("double")
    other.run_and_wait(0, 1)
    expect(side_panel).to_contain_text("twice")
    used.open()
    expect(side_panel).to_contain_text("double")
    expect(side_panel).not_to_contain_text("twice")


@pytest.mark.long
def test_two_tabs_of_one_notebook_are_both_updated(notebook, fresh_page):
    opened, other = notebook(*CELLS), fresh_page
    opened.run_and_wait(0, 1, 2)
    other.goto(f"{opened.server.url}/lab/workspaces/two/tree/{opened.name}?reset")
    expect(other.locator(".jaxcb-badge-note").first).to_contain_text("1 call · 2 sites")
    opened.run_and_wait(3)
    expect(other.locator(".jaxcb-badge-note").first).to_contain_text("2 calls · 3 sites")


@pytest.mark.long
def test_panel_shows_whether_the_extension_is_loaded(notebook):
    opened = notebook(LOAD, DOUBLE, "double(1.0)", "%unload_ext jupyter_jaxcb")
    side_panel = panel(opened)
    expect(side_panel).to_contain_text("%load_ext jupyter_jaxcb")
    opened.run_and_wait(0)
    expect(side_panel).to_contain_text("No callbacks yet")
    opened.run_and_wait(1, 2)
    expect(side_panel.locator(".jaxcb-callsite")).to_have_count(1)
    opened.run_and_wait(3)
    expect(side_panel).to_contain_text("%load_ext jupyter_jaxcb")
    expect(opened.cell(2).locator(".jaxcb-badge-saved .jaxcb-badge-note")).to_have_count(1)


@pytest.mark.long
def test_panel_names_cells_and_filters_rows(shared):
    side_panel = panel(shared)
    rows = side_panel.locator(".jaxcb-callsite-jump")
    expect(side_panel.locator(".jaxcb-callback-jump")).to_have_text("registered at [2] line 2")
    expect(rows.nth(0)).to_contain_text("[3] line 3")
    expect(rows.nth(2)).to_contain_text("[4] line 1")
    search = side_panel.get_by_role("searchbox")
    for words, found in (("unused", ["[3] line 3"]), ("[4]", ["[4] line 1"]), ("nowhere", [])):
        search.fill(words)
        expect(side_panel.locator(".jaxcb-callsite-where")).to_have_text(found)
    expect(side_panel).to_contain_text("No matching callbacks.")
    search.fill("")
    expect(rows).to_have_count(3)


@pytest.mark.long
def test_panel_shows_the_saved_results_of_a_notebook_without_a_kernel(shared, desk):
    shared.save()
    name = "saved-results.ipynb"
    nbformat.write(shared.server.saved(shared.name), shared.server.root / name)
    with desk.showing(shared.server, name) as opened:
        side_panel = panel(opened)
        expect(side_panel).to_contain_text("This kernel has not loaded jupyter_jaxcb.")
        opened.end_kernel()
        expect(side_panel).to_contain_text("saved results")
        expect(side_panel).to_contain_text("This notebook has no kernel.")
        rows = side_panel.locator(".jaxcb-callsite-jump")
        expect(rows).to_have_count(3)
        expect(rows.nth(1)).to_contain_text("[3] line 4")
        rows.nth(1).click()
        opened.page.wait_for_function(
            "() => { const content = window.jupyterapp.shell.currentWidget.content;"
            "return content.activeCellIndex === 2"
            " && content.activeCell.editor.getCursorPosition().line === 3; }"
        )
        opened.cell(3).click()
        opened.command("notebook:clear-cell-output")
        expect(rows).to_have_count(2)
