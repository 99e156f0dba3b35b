"""A saved page in a browser: everything works from a file, and nothing leaves it unasked."""

import re

import pytest
from playwright.sync_api import expect

from tests.report._several import SEVERAL

from .test_accessibility import AXE, CHECK


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "run.html"
    SEVERAL.save(path)
    return path


@pytest.fixture
def opened(desk, fresh_page, file):
    """The page of a recording, and what its console said and which addresses it loaded."""
    fresh_page.noticed = []
    fresh_page.on("console", lambda message: fresh_page.noticed.append(message.text))
    fresh_page.on("request", lambda request: fresh_page.noticed.append(request.url))
    fresh_page.goto(file.as_uri())
    fresh_page.noticed.remove(file.as_uri())
    return fresh_page


def test_page_shows_sites_and_calls_and_loads_nothing(opened):
    expect(opened.locator(".jaxcb-site").first).to_contain_text("bessel")
    opened.get_by_role("tab", name="Calls").click()
    expect(opened.locator(".jaxcb-table-body [role=row]")).to_have_count(len(SEVERAL))
    expect(opened.locator("canvas").first).to_be_visible()
    assert opened.noticed == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_follows_the_color_scheme_and_passes_axe(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    background = opened.evaluate("() => getComputedStyle(document.body).backgroundColor")
    red, *_ = map(int, re.findall(r"\d+", background))
    assert (red > 127) == (scheme == "light")
    opened.evaluate(AXE.read_text())  # as a debugger would: the page's policy allows no script
    assert opened.evaluate(CHECK, "body") == []
    opened.get_by_role("tab", name="Calls").click()
    expect(opened.locator("canvas").first).to_be_visible()
    assert opened.evaluate(CHECK, "body") == []


@pytest.mark.parametrize("width", [600, 320])
def test_narrow_page_does_not_scroll_sideways(opened, width):
    opened.set_viewport_size({"width": width, "height": 800})
    assert opened.evaluate("() => document.documentElement.scrollWidth") <= width


CUT = """() => [...document.querySelectorAll('.jaxcb-site-name > :last-child')]
.filter(place => place.getBoundingClientRect().right
 > place.parentElement.getBoundingClientRect().right + 1).map(place => place.textContent)"""


@pytest.mark.parametrize("width", [400, 550, 700])
def test_narrow_page_shows_the_lines_of_call_sites_in_the_figures_and_the_table(opened, width):
    opened.set_viewport_size({"width": width, "height": 800})
    opened.get_by_role("tab", name="Calls").click()
    names = opened.locator(".jaxcb-distribution-site .jaxcb-site-name")
    expect(names.filter(has_text="line")).not_to_have_count(0)
    expect(opened.locator(".jaxcb-table-site .jaxcb-site-name").first).to_be_visible()
    assert opened.evaluate(CUT) == []


def test_page_without_scripts_has_the_call_sites(browser, file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.locator("li").first).to_contain_text("bessel")
    expect(page.get_by_role("row", name="argument")).to_contain_text("3 looped over")
    context.close()
