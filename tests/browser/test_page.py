"""A saved page in a browser: everything works from a file, and nothing leaves it unasked."""

import csv
import io
import json
import re

import pytest
from playwright.sync_api import expect

from tests.report._several import SEVERAL

from .test_accessibility import AXE, CHECK

PERFETTO = """<!doctype html><title>a stand-in</title><script>
addEventListener('message', ({ data, source }) => {
  if (data === 'PING') source.postMessage('PONG', '*');
  else document.title = new TextDecoder().decode(data.perfetto.buffer);
});
</script>"""


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


def test_page_without_scripts_has_the_table(browser, file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.locator("table").first).to_contain_text("bessel")
    expect(page.locator("svg")).to_be_visible()
    context.close()


def test_calls_are_saved_as_csv(opened):
    with opened.expect_download() as saved:
        opened.get_by_role("button", name="Save as CSV").click()
    assert saved.value.suggested_filename == "host-trace.csv"
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text(), newline="")))
    assert len(rows) == len(SEVERAL)
    assert rows[1]["start_ns"] == "50000" and rows[1]["duration_ns"] == "10001"
    assert rows[2]["error"].startswith('ValueError: a "quoted", <b>bold</b>\nsecond')


def test_call_sites_are_copied_as_markdown(opened):
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.get_by_role("button", name="Copy as Markdown").click()
    expect(opened.get_by_role("status").last).to_have_text("copied the call sites")
    assert "| where | source |" in opened.evaluate("() => navigator.clipboard.readText()")


def test_trace_opens_in_perfetto_after_a_click(opened):
    asked = []

    def answer(route):
        asked.append(route.request.url)
        route.fulfill(body=PERFETTO, content_type="text/html")

    opened.context.route("https://ui.perfetto.dev/**", answer)
    with opened.expect_popup() as tab:
        opened.get_by_role("button", name="Open in Perfetto").click()
    expect(opened.get_by_role("status").last).to_have_text(f"opened {len(SEVERAL)} calls")
    tab.value.wait_for_function("() => document.title.startsWith('{')")
    trace = json.loads(tab.value.title())
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == len(SEVERAL)
    assert asked == ["https://ui.perfetto.dev/"]
