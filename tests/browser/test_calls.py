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
"""
USE = """
for n in range(30):
    y = jax.jit(quick)(float(n))
for n in range(4):
    y = jax.jit(slow)(float(n))
"""


@pytest.fixture(scope="module")
def _ran(desk):
    with desk.opened("calls", [LOAD, TWO, USE]) as opened:
        opened.run_and_wait(0, 1, 2)
        view = opened.cell(2).locator(".jaxcb-view")
        view.locator(".jaxcb-disclosure").click()
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


def test_histogram_is_used_by_keyboard_alone(view):
    histogram = view.get_by_role("slider", name=re.compile("Durations of quick"))
    histogram.focus()
    histogram.press("Home")
    histogram.press("Shift+End")
    histogram.press("Enter")
    expect(count(view)).to_have_text("30 of 34 calls")
    histogram.press("Escape")
    expect(view.get_by_role("button", name=re.compile("remove this filter"))).to_be_hidden()


def test_maximum_selects_the_slowest_call(view):
    view.locator(".jaxcb-distribution-row", has_text="slow").locator(".jaxcb-link").click()
    expect(view.locator(".jaxcb-timeline-selected")).to_contain_text("slow, line")
    expect(view.locator(".jaxcb-table-body [aria-selected=true]")).to_be_visible()


def test_search_finds_calls_by_words_of_their_fields(view):
    search = view.get_by_role("searchbox", name="Search calls")
    search.press_sequentially("SLOW main")
    expect(count(view)).to_have_text("4 of 34 calls")
    search.fill("call 12")
    expect(view.locator(".jaxcb-table-body [role=row]:visible")).to_have_count(1)


def test_timeline_has_the_compilations_of_the_cell(view):
    canvas = view.locator(".jaxcb-timeline-canvas")
    expect(canvas).to_have_accessible_name(re.compile(r"of 34 calls on .* 2 compilations$"))


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


def test_keys_of_the_timeline_are_shown_on_request_or_to_keyboard_users(view):
    hint, canvas = view.locator(".jaxcb-timeline-hint"), view.locator(".jaxcb-timeline-canvas")
    canvas.click(position={"x": 5, "y": 5})
    expect(hint).to_be_hidden()
    button = view.get_by_role("button", name="Keys of the timeline")
    button.click()
    expect(hint).to_contain_text("zoom to a range")
    button.click()
    expect(hint).to_be_hidden()
    button.press("Tab")
    expect(canvas).to_be_focused()
    expect(hint).to_be_visible()
