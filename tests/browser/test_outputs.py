"""The outputs of `%jax_explain --matrix`, `%jax_check` and `%jax_callbacks` in JupyterLab."""

import pytest
from playwright.sync_api import expect

from ._cells import LOAD
from .test_accessibility import AXE, THEMES, check

CALLBACK = """%%jax_callback pure --result x
def noise(x):
    return np.float32(np.random.normal())"""
USE = """@jax.jit
def f(x):
    lost = noise(x)
    return noise(x + 1)
f(1.0);"""
OUTPUTS = ("%jax_explain --matrix f(1.0)", "%jax_check noise(np.float32(2))", "%jax_callbacks")
NARROW = 700  # pixels
LINE = """() => {
  const { content } = window.jupyterapp.shell.currentWidget;
  return [content.activeCellIndex, content.activeCell.editor.getCursorPosition().line];
}"""
SCROLLS = "all => all.filter(each => each.scrollWidth > each.clientWidth).length"


@pytest.fixture
def shown(notebook):
    """A notebook with the three outputs in its cells 3 to 5."""
    opened = notebook(LOAD, CALLBACK, USE, *OUTPUTS)
    opened.run_and_wait()
    for number in (3, 4, 5):
        expect(opened.cell(number).locator(".jaxcb-report")).to_be_visible()
    return opened


def test_lines_are_links_named_by_the_numbers_of_their_cells(shown):
    for number, name, line in ((3, "[3] line 3", 2), (5, "[3] line 4", 3), (4, "noise", 1)):
        shown.cell(number).get_by_role("button", name=name, exact=True).first.click()
        cell = 1 if name == "noise" else 2
        shown.page.wait_for_function(f"at => String(({LINE})()) === String(at)", arg=[cell, line])


def test_no_output_has_a_violation_in_any_theme_or_scrolls_in_a_narrow_window(shown):
    page = shown.page
    page.add_script_tag(path=AXE)
    before = page.viewport_size
    try:
        for theme in THEMES:
            shown.set_theme(theme)
            check(page, ".jaxcb-report")
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        page.set_viewport_size({"width": NARROW, "height": 1000})
        assert page.locator(".jaxcb-report").evaluate_all(SCROLLS) == 0
    finally:
        shown.set_theme(THEMES[0])
        page.set_viewport_size(before)
        page.evaluate("() => window.jupyterapp.shell.expandLeft()")


def test_elided_says_what_it_means(shown):
    elided = shown.cell(5).locator("abbr")
    expect(elided).to_have_text("1 elided")
    assert "fewer host calls than the program text says" in elided.get_attribute("title")
