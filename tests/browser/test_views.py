"""The view below a cell, with a live kernel and in a saved notebook without a kernel."""

import copy
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from ._cells import DOUBLE, ELEMENTS, LOAD, USE
from ._outputs import output, recording
from .test_accessibility import AXE, check

MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"


@pytest.fixture(scope="module")
def _used(desk):
    """A notebook that has run, for tests that do not change it."""
    with desk.opened("used", [LOAD, DOUBLE, USE, ELEMENTS]) as opened:
        opened.run_and_wait(0, 1, 2, 3)
        yield opened


@pytest.fixture
def used(_used):
    """`_used`, in front of the notebooks that other tests opened."""
    _used.open()
    return _used


def opened_view(notebook, number, opened=True):
    """Return a view, expanded or collapsed, whatever the previous test did with it."""
    view = notebook.cell(number).locator(".jaxcb-view")
    button = view.locator(".jaxcb-disclosure")
    if button.get_attribute("aria-expanded") != str(opened).lower():
        button.click()
    return view


def test_headline_ends_with_the_time_in_host_functions_and_that_of_the_cell(used):
    time = re.compile(r" · [\d.]+ .?s: host functions .*, rest [\d.]+ .?s$")
    expect(used.cell(2).locator(".jaxcb-summary")).to_have_text(time)


@pytest.mark.long
def test_headline_expands_to_sites_with_status_reason_and_advice(used):
    view = opened_view(used, 2, opened=False)
    expect(view.locator(".jaxcb-summary")).to_contain_text(
        "⚠ double, line 3: never called (unused) · double · pure · 1 call · () → ()"
    )
    expect(view.locator(".jaxcb-site:visible")).to_have_count(0)
    sites = opened_view(used, 2).locator(".jaxcb-site")
    expect(sites).to_have_count(2)
    expect(sites.nth(0)).to_be_visible()
    expect(sites.nth(0)).to_contain_text("lost = double(x)")
    expect(sites.nth(0)).to_contain_text("unused")
    expect(sites.nth(0)).to_contain_text("nothing uses its result")
    expect(sites.nth(0)).to_contain_text("use an io callback")
    expect(sites.nth(1)).to_contain_text("●")


@pytest.mark.long
def test_batching_diagram_shows_what_the_host_sees(used):
    view = opened_view(used, 3)
    expect(view).to_contain_text("vmap 5")
    expect(view).to_contain_text("batched")
    expect(view).to_contain_text("1 call for 5 elements")


@pytest.mark.parametrize(("width", "lines"), [(1400, 1), (700, 2)])
def test_healthy_sites_take_one_line_each_and_two_in_a_narrow_notebook(
    notebook, fresh_page, width, lines
):
    fresh_page.set_viewport_size({"width": width, "height": 1000})
    facts, measured = recording()
    healthy = next(
        one for one in facts["sites"] if one["function"] == "bessel" and one.get("calls")
    )
    healthy |= {"consequence": "kept", "word": "", "notes": [], "shapes": healthy["shapes"][:1]}
    facts |= {"sites": [healthy] * 3, "headline": [["kept", "3 calls"]]}
    measured |= {"sites": measured["sites"][1:2] * 3, "calls": None}
    opened = notebook("None", outputs=[[output(facts, measured)]], on=fresh_page)
    opened.command("application:toggle-left-area")
    sites = opened_view(opened, 0).locator(".jaxcb-site")
    expect(sites).to_have_count(3)
    heights = sites.evaluate_all("all => all.map(each => each.offsetHeight)")
    assert max(heights) < 15 + 18 * lines
    before = heights[1]
    sites.nth(1).get_by_role("button", name="details of bessel").click()
    expect(sites.nth(1)).to_contain_text("expand_dims")
    assert sites.nth(1).evaluate("site => site.offsetHeight") > before


@pytest.mark.long
def test_link_of_a_site_goes_to_its_line(used):
    view = opened_view(used, 2)
    view.get_by_role("button", name="line 4", exact=True).click()
    used.page.wait_for_function(
        "() => { const cell = window.jupyterapp.shell.currentWidget.content.activeCell;"
        "return cell.editor?.getCursorPosition().line === 3; }"
    )
    assert used.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex") == 2  # fmt: skip


@pytest.mark.long
def test_cell_that_runs_again_keeps_its_view_open_with_tab_filter_and_selection(notebook):
    opened = notebook(LOAD, DOUBLE, "for n in range(4): double(float(n)); double(-1.0)")
    opened.run_and_wait()
    view = opened_view(opened, 2)
    view.locator(".jaxcb-site-show").nth(1).click()
    rows = view.locator(".jaxcb-table-body [role=row]")
    expect(view).to_contain_text("4 of 8 calls")
    rows.nth(1).click()
    selected = view.locator("[role=row][aria-selected=true] .jaxcb-table-number")
    expect(selected).to_have_text("4")
    opened.run_and_wait(2)
    expect(view.get_by_role("tab", name="Calls")).to_have_attribute("aria-selected", "true")
    expect(view).to_contain_text("4 of 8 calls")
    expect(selected).to_have_text("4")
    view.locator(".jaxcb-disclosure").click()
    opened.run_and_wait(2)
    expect(view.locator(".jaxcb-summary")).to_contain_text("8 calls")
    expect(view.locator(".jaxcb-site")).to_have_count(0)


@pytest.mark.long
def test_last_runs_of_a_cell_are_drawn_and_compared_also_after_a_reload(notebook, fresh_page):
    waits = """%%jax_callback io --result x
def slow(x):
    threading.Event().wait(seconds)
    return x"""
    use = "jax.jit(slow)(1.0);"
    book = notebook(LOAD, waits, "seconds = 0.01", use, "seconds = 0.4", on=fresh_page)
    book.run_and_wait(0, 1, 2)
    for _ in range(3):
        book.run_and_wait(3)
    book.run_and_wait(4, 3)
    view = book.cell(3).locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    line = view.get_by_role("img", name="time per call in the last 3 runs")
    expect(line).to_be_visible()
    expect(view.locator(".jaxcb-trend-word")).to_contain_text("slower")
    book.save()
    fresh_page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    book.reload()
    book.wait_for_kernel()
    expect(line).to_be_visible()  # the view is still open
    fresh_page.add_script_tag(path=AXE)
    menu = view.get_by_role("combobox", name="Compare with an earlier run")
    menu.select_option(index=3)
    expect(view.locator(".jaxcb-summary")).to_contain_text(
        "vs run [4]: same number of calls, p95 ×"
    )
    check(fresh_page, ".jaxcb-view")
    view.get_by_role("combobox", name="Run to compare").select_option(index=1)
    expect(view.locator(".jaxcb-compare")).to_contain_text("compared with run [4]")


# In how many lines each pair of times in the comparison of two runs is.
TIMES = """view => [...view.querySelectorAll('td:nth-last-child(-n + 2) > .jaxcb-compare-figures')]
.map(times => new Set([...times.children].map(time => time.offsetTop)).size)"""


@pytest.mark.long
def test_next_run_is_compared_with_a_pinned_one(notebook, fresh_page):
    opened = notebook(LOAD, DOUBLE, "for n in range(4): double(float(n))", on=fresh_page)
    opened.run_and_wait()
    view = opened_view(opened, 2)
    expect(view).not_to_contain_text("vs pinned run")
    view.get_by_role("button", name="Pin to compare").click()
    expect(view.get_by_role("button", name="Unpin")).to_be_focused()
    opened.command("notebook:clear-cell-output")
    opened.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel"
        ".setSource('# longer\\nfor n in range(44): double(float(n))')"
    )
    opened.run_and_wait(2)
    expect(view.locator(".jaxcb-summary")).to_contain_text("vs pinned run: +40 calls, p95 × ")
    expect(view.locator(".jaxcb-compare")).to_contain_text("double, line 2")
    expect(view.locator(".jaxcb-compare")).to_contain_text("4 → 44 +40")
    fresh_page.set_viewport_size({"width": 700, "height": 1000})
    fresh_page.wait_for_function(SETTLED)
    assert view.evaluate(TIMES) == [1, 1]
    view.get_by_role("button", name="Unpin").click()
    expect(view).not_to_contain_text("vs pinned run")


@pytest.mark.long
def test_pinned_run_its_code_and_the_open_view_are_there_after_a_reload(notebook, fresh_page):
    opened = notebook(LOAD, DOUBLE, "for n in range(4): double(float(n))", on=fresh_page)
    opened.run_and_wait()
    view = opened_view(opened, 2)
    view.get_by_role("button", name="Pin to compare").click()
    opened.run_and_wait(2)
    comparison = view.locator(".jaxcb-compare")
    expect(comparison).to_contain_text("The code of the cell is the same.")
    expect(comparison).to_contain_text("The pinned run was the first of its code")
    opened.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[2].model.sharedModel"
        ".setSource('for n in range(9): double(float(n))  # <b>bold</b>')"
    )
    opened.run_and_wait(2)
    expect(comparison).to_contain_text("Times are compared with those of run [4]")
    menu = comparison.get_by_label("Run to compare")
    menu.select_option(index=1)
    opened.save()
    for _ in range(2):
        opened.reload()
        expect(comparison).to_be_visible()
        expect(menu.locator("option:checked")).to_contain_text("[4]")
        expect(view.get_by_role("button", name="Unpin")).to_be_visible()
    menu.select_option(label="this run")
    changed = [
        "− for n in range(4): double(float(n))",
        "+ for n in range(9): double(float(n))  # <b>bold</b>",
    ]
    expect(comparison.locator(".jaxcb-compare-code > *")).to_have_text(changed)
    expect(view.locator(".jaxcb-summary")).to_contain_text("vs pinned run: +5 calls, p95 × ")
    view.get_by_role("button", name="Unpin").click()
    opened.reload()
    expect(view.get_by_role("button", name="Pin to compare")).to_be_visible()


@pytest.mark.long
def test_pinned_run_stays_pinned_when_the_busy_kernel_sends_its_values_later(notebook):
    busy = "import pathlib\nwhile not pathlib.Path('free').exists(): pass"
    opened = notebook(LOAD, DOUBLE, "for n in range(4): double(float(n))", busy)
    opened.run_and_wait(0, 1, 2)
    opened.run(3)
    view = opened_view(opened, 2)
    view.get_by_role("button", name="details of double").click()
    view.get_by_role("button", name="Pin to compare").click()
    (opened.server.root / "free").touch()
    expect(view).to_contain_text("values of ")
    expect(view.locator(".jaxcb-compare")).to_contain_text("Pinned.")
    expect(view.get_by_role("button", name="Unpin")).to_be_focused()


@pytest.mark.long
def test_ctrl_s_saves_the_notebook_while_the_view_has_the_focus(notebook):
    opened = notebook(LOAD, DOUBLE, USE)
    opened.run_and_wait()
    dirty = "() => window.jupyterapp.shell.currentWidget.context.model.dirty"
    assert opened.page.evaluate(dirty)
    opened.cell(2).locator(".jaxcb-disclosure").press("Control+s")
    opened.page.wait_for_function(dirty.replace("window", "!window"))
    assert opened.server.saved(opened.name).cells[2].outputs


@pytest.mark.long
def test_table_and_timeline_of_calls_share_their_selection(notebook):
    opened = notebook(LOAD, DOUBLE, "for n in range(12): double(float(n))")
    opened.run_and_wait()
    view = opened_view(opened, 2)
    view.get_by_role("tab", name="Calls").click()
    expect(view.locator("canvas").first).to_be_visible()
    rows = view.locator(".jaxcb-table-body [role=row]")
    expect(view).to_contain_text("12 calls")
    rows.nth(3).click()
    expect(rows.nth(3)).to_have_attribute("aria-selected", "true")
    expect(view.locator(".jaxcb-timeline-selected")).to_contain_text("double, line 1")


@pytest.mark.long
def test_tooltip_of_a_call_has_each_term_on_one_line(notebook):
    view = opened_view(notebook("None", outputs=[[output(*recording())]], name="tooltip"), 0)
    view.get_by_role("tab", name="Calls").click()
    canvas = view.locator("canvas")
    canvas.hover(position={"x": canvas.bounding_box()["width"] / 2, "y": 56})
    terms = view.get_by_role("tooltip").locator("dt")
    expect(terms).to_have_text(["start", "duration", "shapes", "thread"])
    heights = terms.evaluate_all("all => all.map(each => each.getBoundingClientRect().height)")
    assert max(heights) < 20


@pytest.mark.long
def test_values_come_from_the_live_kernel_and_are_not_saved(used):
    view = opened_view(used, 3)
    view.get_by_role("tab", name="Calls").click()
    expect(view).to_contain_text("[0, 1, 2, 3, 4] → [0, 2, 4, 6, 8]")
    used.save()
    saved = used.server.saved(used.name)
    data = [out.data[MIME] for cell in saved.cells for out in cell.outputs if MIME in out.data]
    assert len(data) == 2
    assert "[0, 2, 4, 6, 8]" not in json.dumps(saved)


@pytest.mark.long
def test_saved_notebook_shows_its_traces_without_a_kernel(used, notebook):
    used.save()
    saved = used.server.saved(used.name)
    again = notebook(*[cell.source for cell in saved.cells], name="again",
                     outputs=[cell.outputs for cell in saved.cells])  # fmt: skip
    again.end_kernel()
    sites = opened_view(again, 2).locator(".jaxcb-site")
    expect(sites).to_have_count(2)
    view = again.cell(2).locator(".jaxcb-view")
    view.get_by_role("tab", name="Calls").click()
    expect(view.locator(".jaxcb-table-body [role=row]")).to_have_count(1)


@pytest.mark.long
def test_saved_trace_is_html_without_the_extension(used, notebook):
    used.save()
    saved = used.server.saved(used.name)
    plain = notebook(*[cell.source for cell in saved.cells], name="plain", extension=False,
                     outputs=[cell.outputs for cell in saved.cells])  # fmt: skip
    details = plain.cell(2).locator("details.jaxcb")
    details.locator("summary").click()
    expect(details).to_contain_text("nothing uses its result")
    expect(plain.page.locator(".jaxcb-view")).to_have_count(0)


@pytest.mark.long
def test_notebook_7_shows_views_and_badges(notebook):
    opened = notebook(LOAD, DOUBLE, USE, app="notebook")
    opened.run_and_wait()
    expect(opened_view(opened, 2).locator(".jaxcb-site")).to_have_count(2)
    expect(opened.cell(2).locator(".jaxcb-badge-note").first).to_contain_text("unused")


@pytest.mark.long
def test_view_of_a_recording_is_a_widget_without_the_extension(notebook):
    opened = notebook(
        LOAD, DOUBLE,
        "import jupyter_jaxcb\nwith jupyter_jaxcb.record() as r: double(np.arange(3.))",
        "jupyter_jaxcb.view(r.recording)", extension=False,
    )  # fmt: skip
    opened.run_and_wait()
    site = opened_view(opened, 3).locator(".jaxcb-site")
    expect(site).not_to_contain_text("(3,)")
    site.get_by_role("button", name="details of double").click()
    expect(site).to_contain_text("(3,)")


@pytest.mark.long
def test_colors_follow_the_theme(used):
    source = opened_view(used, 2).locator(".jaxcb-site-source").first
    for theme, darkest, brightest in (("Light", 0, 300), ("Dark", 500, 765), ("Light", 0, 300)):
        used.set_theme(f"JupyterLab {theme}")
        # Wait for the style sheet of the theme; the sum of white is 765.
        used.page.wait_for_function(
            "([node, darkest, brightest]) => {"
            "const rgb = getComputedStyle(node).color.match(/\\d+/g).slice(0, 3).map(Number);"
            "const sum = rgb[0] + rgb[1] + rgb[2];"
            "return darkest <= sum && sum <= brightest; }",
            arg=[source.element_handle(), darkest, brightest],
        )


# The scrolled elements that are wider than they show, and timelines that scroll without need.
SCROLLED = """() => [...document.querySelectorAll(
    '.jp-NotebookPanel:not(.lm-mod-hidden) :is(.jp-OutputArea-output, .jp-OutputArea-output *)')]
  .filter(one => one.clientWidth > 0 && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX)
      && one.scrollWidth > one.clientWidth
    || one.matches('.jaxcb-timeline-scroller') && one.scrollHeight > one.clientHeight)
  .map(one => `${one.className}: ${one.scrollWidth} of ${one.clientWidth}`)"""
# JupyterLab lays out, then our observers run, then Chromium paints.
SETTLED = """() => new Promise(done =>
  requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))
  .then(() => true)"""
WIDTHS = (700, 800, 1400)


def test_no_view_scrolls_sideways_at_700_800_and_1400_pixels(notebook, page):
    facts, measured = recording()
    profile = json.loads((Path(__file__).parents[1] / "data" / "recording.json").read_text())
    profiled = copy.deepcopy(measured) | {"profile": profile["metadata"][MIME]["profile"]}
    saved = [[output(facts, measured)], [output(facts, profiled)]]
    book = notebook("None", "None", outputs=saved, name="widths")
    book.command("application:toggle-left-area")
    try:
        for number, tabs in enumerate([("Sites", "Calls"), ("Time",)]):
            view = opened_view(book, number)
            for tab in tabs:
                view.get_by_role("tab", name=tab).click()
                for width in WIDTHS:
                    page.set_viewport_size({"width": width, "height": 1000})
                    page.wait_for_function(SETTLED)
                    assert page.evaluate(SCROLLED) == [], (tab, width)
    finally:
        book.command("application:toggle-left-area")
        page.set_viewport_size({"width": 1400, "height": 1000})
