"""The tab of the calls: distribution, search, colors, compilations."""

import re

import pytest
from playwright.sync_api import expect

from ._cells import LOAD

TWO = """
import jax, time, numpy as np, jax.numpy as jnp
import jupyter_jaxcb as jaxcb

@jaxcb.io(result="x")
def quick(x):
    return x

@jaxcb.io(result="x")
def slow(x):
    time.sleep(0.002)
    return x

@jaxcb.pure(result="x")
def paused(x):
    time.sleep(0.1)
    return x
"""
LOOP = "y = jax.vmap(paused)(jnp.arange(3.0))"
USE = """
for n in range(30):
    y = jax.jit(quick)(float(n))
for n in range(4):
    y = jax.jit(slow)(float(n))
"""


@pytest.fixture(scope="module")
def _ran(desk):
    with desk.opened("calls", [LOAD, TWO, USE, LOOP]) as opened:
        opened.run_and_wait(0, 1, 2, 3)
        view = opened.cell(2).locator(".jaxcb-view")
        disclosure = view.locator(".jaxcb-disclosure")
        # The host trace of a cell that ran for more than two seconds is open.
        if disclosure.get_attribute("aria-expanded") != "true":
            disclosure.click()
        view.get_by_role("tab", name="Calls").click()
        yield opened


@pytest.fixture
def view(_ran):
    """The calls of a cell that has run, without filters."""
    _ran.open()
    view = _ran.cell(2).locator(".jaxcb-view")
    expect(view.locator(".jaxcb-table-count")).to_be_visible()
    if view.get_by_role("button", name="Clear filters").is_visible():
        view.get_by_role("button", name="Clear filters").click()
    expect(view.locator(".jaxcb-table-count")).to_have_text("34 calls")
    return view


def count(view):
    return view.locator(".jaxcb-table-count")


@pytest.mark.long
def test_bar_of_a_histogram_filters_the_calls_and_its_chip_shows_all_again(view):
    histogram = view.get_by_role("slider", name=re.compile("Durations of slow"))
    tallest = int(histogram.get_attribute("aria-valuenow"))
    bins = int(histogram.get_attribute("aria-valuemax")) + 1
    calls = re.search(r"(\d+) of 4 calls", histogram.get_attribute("aria-valuetext"))[1]
    box = histogram.bounding_box()
    histogram.click(position={"x": box["width"] * (tallest + 0.5) / bins, "y": 12})
    expect(count(view)).to_have_text(f"{calls} of 34 calls")
    expect(view.locator(".jaxcb-table-body [role=row]:visible")).to_have_count(int(calls))
    expect(view.get_by_role("button", name="Only calls of slow")).to_have_attribute(
        "aria-pressed", "true"
    )
    view.get_by_role("button", name=re.compile("remove this filter")).click()
    expect(count(view)).to_have_text("4 of 34 calls")


@pytest.mark.long
def test_histogram_is_used_by_keyboard_alone(view):
    histogram = view.get_by_role("slider", name=re.compile("Durations of quick"))
    histogram.focus()
    histogram.press("Home")
    histogram.press("Shift+End")
    histogram.press("Enter")
    expect(count(view)).to_have_text("30 of 34 calls")
    histogram.press("Escape")
    expect(view.get_by_role("button", name=re.compile("remove this filter"))).to_be_hidden()


@pytest.mark.long
def test_maximum_selects_the_slowest_call(view):
    view.locator(".jaxcb-distribution-row", has_text="slow").locator(".jaxcb-link").click()
    expect(view.locator(".jaxcb-timeline-selected")).to_contain_text("slow, line")
    expect(view.locator(".jaxcb-table-body [aria-selected=true]")).to_be_visible()


@pytest.mark.long
def test_search_finds_calls_by_words_of_their_fields(view):
    search = view.get_by_role("searchbox", name="Search calls")
    search.press_sequentially("SLOW main")
    expect(count(view)).to_have_text("4 of 34 calls")
    search.fill("call 12")
    expect(view.locator(".jaxcb-table-body [role=row]:visible")).to_have_count(1)


@pytest.mark.long
def test_timeline_has_the_compilations_of_the_cell(view):
    canvas = view.locator(".jaxcb-timeline-canvas")
    expect(canvas).to_have_accessible_name(re.compile(r"of 34 calls on .* 2 compilations$"))


@pytest.mark.long
def test_colors_of_durations_have_a_legend(view):
    canvas, legend = view.locator(".jaxcb-timeline-canvas"), view.locator(".jaxcb-timeline-ramp")
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    view.get_by_role("button", name="Color by duration").click()
    expect(legend).to_be_visible()
    view.page.wait_for_function(
        "before => document.querySelector('.jaxcb-timeline-canvas').toDataURL() !== before",
        arg=before,
    )
    view.get_by_role("button", name="Color by site").click()
    expect(legend).to_be_hidden()


@pytest.mark.long
def test_keys_of_the_timeline_are_shown_on_request_or_to_keyboard_users(view):
    hint, canvas = view.locator(".jaxcb-timeline-hint"), view.locator(".jaxcb-timeline-canvas")
    canvas.click(position={"x": 5, "y": 5})
    expect(hint).to_be_hidden()
    button = view.get_by_role("button", name="Keys of the timeline")
    button.click()
    expect(hint).to_contain_text("mark a range")
    button.click()
    expect(hint).to_be_hidden()
    button.press("Tab")
    expect(canvas).to_be_focused()
    expect(hint).to_be_visible()


def test_first_click_after_keys_in_the_timeline_selects_a_row(view):
    canvas, hint = view.locator(".jaxcb-timeline-canvas"), view.locator(".jaxcb-timeline-hint")
    view.get_by_role("button", name="Keys of the timeline").press("Tab")
    canvas.press("Escape")
    expect(hint).to_be_visible()
    row = view.locator(".jaxcb-table-body [role=row]:visible").nth(4)
    number = row.locator(".jaxcb-table-number").inner_text()
    row.scroll_into_view_if_needed()
    box = row.bounding_box()
    view.page.mouse.move(box["x"] + 200, box["y"] + box["height"] / 2)
    view.page.mouse.down()
    view.page.evaluate("() => new Promise(requestAnimationFrame)")
    view.page.mouse.up()
    expect(view.locator(".jaxcb-timeline-selected")).to_contain_text(f"call {number} ")
    expect(hint).to_be_hidden()


def drag(page, box, start, end, y):
    """Drag the mouse over an element's box, from one share of its width to another."""
    page.mouse.move(box["x"] + start * box["width"], box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + y, steps=5)
    page.mouse.up()


@pytest.mark.long
def test_range_dragged_on_the_axis_has_count_sum_and_median(view):
    canvas, range_ = view.locator(".jaxcb-timeline-canvas"), view.locator(".jaxcb-timeline-range")
    drag(view.page, canvas.bounding_box(), 0.3, 0.999, 8)
    words = re.compile(r"s: \d+ calls · sum .+ · median .+s$")
    expect(range_.get_by_role("status")).to_have_text(words)
    canvas.press("0")
    canvas.press("m")
    expect(range_.get_by_role("status")).to_have_text(re.compile("s: 34 calls · sum"))
    range_.get_by_role("button", name="Remove the range").click()
    expect(range_).to_be_hidden()


@pytest.mark.long
def test_edge_below_the_timeline_makes_its_lanes_taller(view):
    grip = view.get_by_role("separator", name="Height of the timeline")
    canvas = view.locator(".jaxcb-timeline-canvas")
    before = canvas.bounding_box()["height"]
    box = grip.bounding_box()
    view.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 4)
    view.page.mouse.down()
    view.page.mouse.move(box["x"], box["y"] + 64, steps=5)
    view.page.mouse.up()
    lanes = int(grip.get_attribute("aria-valuemin")) // 22
    expect(grip).to_have_attribute("aria-valuenow", str(22 * lanes + 60 // lanes * lanes))
    assert canvas.bounding_box()["height"] == before + 60 // lanes * lanes
    assert view.locator(".jaxcb-timeline-scroller").evaluate(
        "each => each.scrollHeight === each.clientHeight && each.scrollWidth === each.clientWidth"
    )
    grip.dblclick()
    assert canvas.bounding_box()["height"] == before


@pytest.mark.long
def test_w_and_s_zoom_at_the_pointer_and_the_colors_of_durations_follow(view):
    canvas, ramp = view.locator(".jaxcb-timeline-canvas"), view.locator(".jaxcb-timeline-ramp")
    view.get_by_role("button", name="Color by duration").click()
    view.locator(".jaxcb-distribution-row", has_text="slow").locator(".jaxcb-link").click()
    canvas.press("f")
    longest = ramp.inner_text()
    expect(ramp).to_have_text(re.compile(r"ms$"))
    canvas.hover(position={"x": canvas.bounding_box()["width"] - 20, "y": 30})
    for _ in range(8):
        canvas.press("s")
    expect(ramp).not_to_have_text(longest)
    view.get_by_role("button", name="Color by site").click()


def test_call_names_the_crossing_that_made_it_and_the_outline_is_explained(_ran):
    _ran.open()
    looped = _ran.cell(3).locator(".jaxcb-view")
    if looped.locator(".jaxcb-disclosure").get_attribute("aria-expanded") != "true":
        looped.locator(".jaxcb-disclosure").click()
    looped.get_by_role("tab", name="Calls").click()
    timeline = looped.locator(".jaxcb-timeline")
    outline = timeline.locator(".jaxcb-timeline-crossing")
    expect(outline).to_be_visible()
    expect(outline.locator("abbr")).to_have_attribute("title", re.compile("^Crossing: One round"))
    canvas = timeline.locator("canvas")
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] / 2, "y": box["height"] - 10})
    expect(timeline.get_by_role("tooltip")).to_contain_text(
        re.compile(r"crossing\s*3 calls in 3\d\d ms")
    )
    others = _ran.cell(2).locator(".jaxcb-timeline-crossing")
    expect(others).to_be_hidden()
