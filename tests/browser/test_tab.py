"""A host trace can be opened in a tab of its own, which is as wide as the window."""

from pathlib import Path

from playwright.sync_api import expect

from ._cells import DOUBLE, LOAD, USE
from .test_accessibility import AXE, THEMES, check

ACTIVE = "() => window.jupyterapp.shell.currentWidget.context?.path ?? ''"
TAB = ".jaxcb-tab-output:not(.lm-mod-hidden)"


def test_tab_has_the_whole_trace_and_its_links_lead_back_to_the_notebook(notebook, page):
    opened = notebook(LOAD, DOUBLE, USE)
    opened.run_and_wait()
    page.add_script_tag(path=AXE)
    view = opened.cell(2).locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    width = view.bounding_box()["width"]
    with page.expect_download() as csv:
        view.get_by_role("button", name="Save as CSV").click()
    assert csv.value.suggested_filename.endswith("-3.csv")
    assert len(Path(csv.value.path()).read_text().splitlines()) == 2
    view.get_by_role("button", name="Open in a tab").click()
    tab = page.locator(TAB)
    expect(tab.locator(".jaxcb-site-where")).to_have_count(2)
    assert tab.locator(".jaxcb-view").bounding_box()["width"] > width
    expect(page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab.lm-mod-current")).to_contain_text(
        "Host trace [3]"
    )
    expect(tab.get_by_role("button", name="Open in a tab")).to_have_count(0)
    for theme in THEMES:
        opened.set_theme(theme)
        check(page, TAB)
    opened.set_theme(THEMES[0])
    tab.get_by_role("tab", name="Calls").click()
    expect(tab.locator(".jaxcb-table-body [role=row]")).to_have_count(1)
    tab.get_by_role("tab", name="Sites").click()
    tab.locator("button.jaxcb-site-where").first.click()
    page.wait_for_function(f"path => ({ACTIVE})() === path", arg=opened.name)
    page.locator(".lm-TabBar-tab", has_text="Host trace [3]").locator(
        ".lm-TabBar-tabCloseIcon"
    ).click()
    expect(page.locator(TAB)).to_have_count(0)
