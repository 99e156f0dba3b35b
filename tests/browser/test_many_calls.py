"""A million host calls: the view has all of them."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from ._lab import WAIT_MS

ROOT = Path(__file__).parents[2]
CALLS = 1_000_000
SLOWEST = CALLS // 8 + 1  # the number of the longest call
FIND_TESTS = f"import sys; sys.path.insert(0, {str(ROOT)!r})"
RECORD = """
%load_ext jupyter_jaxcb
import numpy as np
import jupyter_jaxcb as jaxcb
from tests.interface import VMAP_METHODS, Aval, LoweredSite, Recorder, Site, VmapLevel
from tests.interface import record_elements

def recorded(calls):
    recorder = Recorder(capacity=calls)
    sites = [
        LoweredSite(
            Site("pure", name, "<cell>", line, 0, cell=True, source=f"{name}(x)"),
            None, -1, (Aval((calls // 4,), "float32"),), (Aval((calls // 4,), "float32"),),
            (VmapLevel(calls // 4, VMAP_METHODS["sequential"], (True,)),),
        )
        for line, name in [(1, "bessel"), (2, "gamma")]
    ]
    took = np.random.default_rng(0).integers(500, 2_000, calls)
    took[calls // 8] = 9_000_000
    stamps = np.concatenate([[0], np.cumsum(took)])
    quarter = calls // 4
    for part in range(4):
        elements, first = np.arange(quarter), part * quarter
        record_elements(recorder, sites[part % 2], 1, elements, stamps[first:first + quarter + 1])
    return recorder.freeze()
"""
MILLION = f"{FIND_TESTS}{RECORD}\nrecording = recorded({CALLS})"


def shown(view):
    """Return the element of the table that shows the number of calls."""
    return view.locator(".jaxcb-table-count")


def row(view, number):
    """Return the row of a call in the table; calls are numbered from 1."""
    return view.locator(f'.jaxcb-table-row[data-row="{number - 1}"]')


def pan(page, canvas):
    """Drag the timeline to the left."""
    box = canvas.bounding_box()
    middle, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(middle, y)
    page.mouse.down()
    page.mouse.move(middle - box["width"] / 4, y, steps=10)
    page.mouse.up()


def check_table(view):
    """Check that the table of a million calls scrolls to its end, sorts, and selects."""
    grid = view.get_by_role("grid", name="Host calls")
    grid.evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    expect(row(view, CALLS)).to_be_visible()
    row(view, CALLS).click()
    selected = view.locator(".jaxcb-timeline-selected")
    expect(selected).to_contain_text("call 1,000,000 · gamma, line 2 · element 249999")
    grid.press("Home")
    expect(row(view, 1)).to_be_visible()
    expect(selected).to_contain_text("call 1 · bessel, line 1 · element 0")
    duration = view.get_by_role("columnheader", name="Duration")
    duration.get_by_role("button").click()
    expect(duration).to_have_attribute("aria-sort", "ascending")
    expect(view.locator('[role=row][aria-rowindex="2"] .jaxcb-table-duration')).to_have_text(
        "500 ns"
    )
    duration.get_by_role("button").click()
    expect(duration).to_have_attribute("aria-sort", "descending")
    first = view.locator('[role=row][aria-rowindex="2"]')
    expect(first.locator(".jaxcb-table-number")).to_have_text(f"{SLOWEST:,}")
    expect(first.locator(".jaxcb-table-duration")).to_have_text("9 ms")
    assert view.locator("[role=row]").count() < 200
    assert view.locator("*").count() < 1_000


@pytest.mark.long
def test_view_gets_all_of_a_million_calls_from_a_live_kernel(notebook, page):
    book = notebook(MILLION, "recording")
    book.run_and_wait()
    view = page.locator(".jaxcb-view")
    expect(view.locator(".jaxcb-summary")).to_contain_text("500,000 calls")
    # In one step, so that the tab of the calls is open when they arrive.
    view.evaluate(
        "view => { view.querySelector('.jaxcb-disclosure').click();"
        " view.querySelectorAll('[role=tab]')[1].click(); }"
    )
    expect(shown(view)).to_have_text("1,000,000 calls")
    expect(view).not_to_contain_text("are saved")
    canvas = view.locator(".jaxcb-timeline-canvas")
    for _ in range(4):
        view.get_by_role("button", name="Zoom in").click()
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    pan(page, canvas)
    page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before", arg=[canvas.element_handle(), before]
    )
    check_table(view)


@pytest.mark.long
def test_saved_notebook_shows_how_many_of_a_million_calls_are_saved(notebook, page, servers):
    book = notebook(MILLION, "recording", name="saved-million")
    book.run_and_wait()
    book.save()
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    saved = book.server.saved("saved-million.ipynb").cells[1].outputs
    copy = notebook("recording", name="saved-copy", outputs=[saved])
    view = copy.cell(0).locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    view.get_by_role("tab", name="Calls").click()
    expect(shown(view)).to_have_text("20,000 calls")
    expect(view).to_contain_text("the first 20,000 of 1,000,000 calls are saved")


@pytest.mark.long
def test_widget_has_all_of_a_million_calls_without_the_extension(notebook):
    book = notebook(MILLION, "jaxcb.view(recording)", extension=False)
    book.run_and_wait()
    view = book.page.locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click(timeout=WAIT_MS)
    view.get_by_role("tab", name="Calls").click()
    expect(shown(view)).to_have_text("1,000,000 calls")
    check_table(view)


@pytest.mark.long
def test_widget_has_all_calls_with_the_extension_too(notebook, page):
    book = notebook(RECORD, "jaxcb.view(recorded(30_000))")
    book.run_and_wait()
    view = page.locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    view.get_by_role("tab", name="Calls").click()
    expect(shown(view)).to_have_text("30,000 calls")
