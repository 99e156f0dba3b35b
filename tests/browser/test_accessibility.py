"""Accessibility: axe-core finds no violation, and everything works by keyboard."""

import pytest
from playwright.sync_api import expect

from ._lab import REPOSITORY, WAIT_MS
from ._outputs import output, recording

AXE = REPOSITORY / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
THEMES = ["JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast"]
LOAD = """
%load_ext jupyter_jaxcb
import jax, jax.numpy as jnp
"""
CALLBACKS = """%%jax_callback pure --result x
def half(x):
    return x / 2

def lost(x):
    return x
"""
RUN = """
@jax.jit
def f(x):
    lost(x)
    return half(x)

f(jnp.ones(3)).block_until_ready()
"""
# Serious and critical violations, without those about which axe is unsure.
CHECK = """async css => {
  const found = await axe.run({ include: [[css]] }, { resultTypes: ['violations'] });
  return found.violations
    .filter(one => ['serious', 'critical'].includes(one.impact))
    .flatMap(one => one.nodes.map(node => `${one.id}: ${node.target} ${node.failureSummary}`));
}"""

# The cells, and whether JupyterLab shows a dialog (pressing "0 0" asks to restart the kernel).
NOTEBOOK = """() => [
  window.jupyterapp.shell.currentWidget.content.widgets.map(
    ({ model }) => [model.type, model.sharedModel.getSource(), model.executionCount]),
  document.querySelector('.jp-Dialog') !== null
]"""


def check(page, css):
    """Check that the elements `css` selects have no serious or critical violation."""
    expect(page.locator(css).first).to_be_visible()
    assert page.evaluate(CHECK, css) == []


@pytest.fixture
def view(notebook, page):
    """The view of a saved recording, collapsed."""
    notebook("None", outputs=[[output(*recording())]])
    found = page.locator(".jaxcb-view")
    expect(found.locator(".jaxcb-disclosure")).to_be_visible()
    return found


def focused(page):
    """Return the classes of the focused element."""
    return page.evaluate("() => document.activeElement.className")


def tab_to(page, css, key="Tab"):
    """Press Tab until an element that `css` selects has the focus."""
    for _ in range(60):
        page.keyboard.press(key)
        if page.evaluate("css => document.activeElement.matches(css)", css):
            return
    raise AssertionError(f"{key} does not reach {css}")


def opened(view, tab):
    """Expand a view, open a tab without filters, and return its elements that take the focus."""
    button = view.locator(".jaxcb-disclosure")
    if button.get_attribute("aria-expanded") != "true":
        button.click()
    view.get_by_role("tab", name=tab).click()
    if view.get_by_role("button", name="Clear filters").is_visible():
        view.get_by_role("button", name="Clear filters").click()
    return view.locator(":is(button, canvas, input, select, summary, [tabindex]):visible")


@pytest.mark.long
def test_axe_finds_no_violation_in_any_theme(notebook, page):
    saved = [output(*recording())]
    cells = [LOAD, CALLBACKS, RUN, "None"]
    book = notebook(*cells, outputs=[[], [], [], saved], name="axe")
    book.command("jupyter-jaxcb:open-panel")
    book.run_and_wait(0, 1, 2)
    expect(page.locator(".jaxcb-badge-note")).to_have_count(4)
    page.add_script_tag(path=AXE)
    view = page.locator(".jaxcb-view").last
    view.locator(".jaxcb-disclosure").click()
    for theme in THEMES:
        book.set_theme(theme)
        badge = book.cell(2).locator(".jaxcb-badge-note").first
        badge.click(modifiers=["Shift"])
        badge.click()
        expect(page.locator(".jaxcb-callsite[aria-current]")).to_be_visible()
        expect(book.cell(2).locator(".jaxcb-site[aria-current]")).to_be_focused()
        badge.hover()
        check(page, ".jaxcb-tip")
        check(page, ".jaxcb-panel")
        check(page, ".jaxcb-badge-row")
        for tab in ("Calls", "Sites"):
            view.get_by_role("tab", name=tab).click()
            if tab == "Calls":
                view.get_by_role("grid").press("End")
            check(page, ".jaxcb-view")
    book.set_theme(THEMES[0])  # the theme belongs to the page, which other tests use


def test_axe_finds_no_violation_in_a_list_of_many_sites(notebook, page):
    facts, measured = recording()
    facts["sites"] *= 4
    measured["sites"] *= 4
    book = notebook("None", outputs=[[output(facts, measured)]])
    page.add_script_tag(path=AXE)
    view = page.locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    view.locator(".jaxcb-sites-chip").first.click()
    view.locator(".jaxcb-site-fold").first.click()
    for theme in THEMES:
        book.set_theme(theme)
        check(page, ".jaxcb-sites-tools")
        check(page, ".jaxcb-view")
    book.set_theme(THEMES[0])  # the theme belongs to the page, which other tests use


@pytest.mark.long
def test_view_can_be_opened_and_navigated_by_keyboard(view, page):
    page.locator(".jp-Notebook .jp-InputPrompt").first.click()
    page.keyboard.press("Escape")
    tab_to(page, ".jaxcb-disclosure")
    page.keyboard.press("Enter")
    expect(view.locator(".jaxcb-disclosure")).to_have_attribute("aria-expanded", "true")
    expect(view.locator(".jaxcb-body")).to_be_visible()
    tab_to(page, "[role=tab]")
    sites, calls = view.get_by_role("tab", name="Sites"), view.get_by_role("tab", name="Calls")
    expect(sites).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(calls).to_be_focused()
    expect(calls).to_have_attribute("aria-selected", "true")
    expect(view.get_by_role("tabpanel", name="Calls")).to_be_visible()
    expect(view.get_by_role("tabpanel", name="Sites")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(sites).to_be_focused()
    page.keyboard.press("End")
    expect(calls).to_be_focused()
    tab_to(page, ".jaxcb-disclosure", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(view.locator(".jaxcb-body")).to_be_hidden()


@pytest.mark.long
def test_arrow_keys_move_through_the_rows_of_the_table(view, page):
    view.locator(".jaxcb-disclosure").click()
    view.get_by_role("tab", name="Calls").click()
    grid = view.get_by_role("grid", name="Host calls")
    expect(grid).to_be_visible()
    tab_to(page, "[role=grid]")
    selected = view.locator("[role=row][aria-selected=true] .jaxcb-table-number")
    for key, number in [
        ("ArrowDown", "1"),
        ("ArrowDown", "2"),
        ("ArrowUp", "1"),
        ("End", "6"),
        ("ArrowDown", "6"),
        ("Home", "1"),
    ]:
        page.keyboard.press(key)
        expect(selected).to_have_text(number)
        expect(view.locator(".jaxcb-timeline-selected")).to_contain_text(f"call {number} ·")
        active = grid.get_attribute("aria-activedescendant")
        expect(view.locator(f"[id='{active}'] .jaxcb-table-number")).to_have_text(number)
    page.keyboard.press("Escape")
    expect(selected).to_have_count(0)
    expect(grid).to_be_focused()


@pytest.mark.long
def test_timeline_can_be_focused_and_moved_by_keyboard(view, page):
    view.locator(".jaxcb-disclosure").click()
    view.get_by_role("tab", name="Calls").click()
    canvas = view.locator(".jaxcb-timeline-canvas")
    expect(canvas).to_have_accessible_name(
        "Timeline of 6 calls on 1 thread in 2 s, 1 failed, 1 NaN or infinity, 1 compilation"
    )
    tab_to(page, ".jaxcb-timeline-canvas")
    selected = view.locator(".jaxcb-timeline-selected")
    for key, number in [("n", 1), ("n", 2), ("p", 1)]:
        page.keyboard.press(key)
        expect(selected).to_contain_text(f"call {number} ·")


@pytest.mark.long
def test_keys_in_a_view_do_not_affect_the_notebook(notebook, page):
    notebook("1 + 1", "None", "2 + 2", outputs=[[], [output(*recording())], []], name="keys")
    view = page.locator(".jaxcb-view")
    expect(view).to_be_visible()
    # Chromium draws a page behind another one, such as Perfetto's, only once a second.
    page.evaluate("() => { window.open = () => null; }")
    before = page.evaluate(NOTEBOOK)
    for tab in ("Sites", "Calls"):
        for number in range(opened(view, tab).count()):
            for keys in ([*"bddx", "Shift+Enter"], ["Enter"]):
                element = opened(view, tab).nth(number)
                if element.inner_text() in ("Open in a tab", "Profile this cell"):
                    continue  # as it says
                element.focus()
                html = element.evaluate("element => element.outerHTML")
                for key in keys:
                    page.keyboard.press(key)
                assert page.evaluate(NOTEBOOK) == before, f"{keys} in {html}"


@pytest.mark.long
def test_strings_of_the_user_are_text_nodes(notebook, page):
    facts, measured = recording()
    text = "<b>&amp;</b> <i title=x>y</i>"
    facts["sites"][0]["source"] = text
    facts["headline"] = [["kept", text]]
    notebook("None", outputs=[[output(facts, measured)]])
    view = page.locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    for css in (".jaxcb-summary-part", ".jaxcb-site-source"):
        node = view.locator(css).first
        expect(node).to_be_visible(timeout=WAIT_MS)
        assert node.evaluate("node => [...node.childNodes].map(c => [c.nodeType, c.data])") == [
            [3, text]
        ]
