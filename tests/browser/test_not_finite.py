"""NaN can be traced: from the call site to the first call that returned it."""

import re

import pytest
from playwright.sync_api import expect

from ._cells import LOAD

DEFINE = """
import jupyter_jaxcb as jaxcb

@jaxcb.pure(result="x")
def root(x):
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)

@jaxcb.pure(result="x")
def double(x):
    return 2 * x
"""
ARRAY = "y = root(jnp.arange(40.0) - 3)"
USE = """f = jax.jit(lambda x: double(root(x)))
for n in range(8):
    y = f(float(5 - n))
"""


@pytest.fixture(scope="module")
def _ran(desk):
    with desk.opened("nan", [LOAD, DEFINE, USE, ARRAY]) as opened:
        opened.run_and_wait(0, 1, 2, 3)
        yield opened


@pytest.fixture
def view(_ran):
    _ran.open()
    view = _ran.cell(2).locator(".jaxcb-view")
    if view.locator(".jaxcb-body").is_hidden():
        view.locator(".jaxcb-disclosure").click()
    return view


def test_site_names_the_first_call_that_returned_nan_and_jumps_to_it(view):
    view.get_by_role("tab", name="Sites").click()
    site = view.locator(".jaxcb-site", has_text="root · pure")
    expect(site).to_contain_text("2 calls returned NaN or infinity for finite arguments")
    first = site.locator(".jaxcb-site-note", has_text="the first of them is call")
    expect(first).to_have_count(1)
    values = site.locator(".jaxcb-site-sample_values li")
    expect(values).to_have_text(["5 → 2.23607", "4 → 2", "3 → 1.73205", "-1 → nan", "-2 → nan"])
    expect(site.locator(".jaxcb-not-finite")).to_have_text(["nan", "nan"])
    number = int(re.search(r"call (\d+)", first.inner_text())[1])
    first.get_by_role("button", name="jump to first: root").click()
    selected = view.locator(".jaxcb-table-body [aria-selected=true]:visible")
    expect(selected.locator(".jaxcb-table-number")).to_have_text(str(number))
    expect(selected.locator(".jaxcb-table-sample")).to_have_text("-1 → nan")
    expect(view.locator(".jaxcb-timeline-selected")).to_contain_text(
        "returned NaN or infinity for finite arguments"
    )


def test_calls_with_nan_are_filtered_and_marked(view):
    view.get_by_role("tab", name="Calls").click()
    canvas = view.locator(".jaxcb-timeline-canvas")
    expect(canvas).to_have_accessible_name(re.compile("of 16 calls .* 4 NaN or infinity"))
    view.get_by_label("NaN or infinity only").check()
    expect(view.locator(".jaxcb-table-count")).to_have_text("4 of 16 calls")
    rows = view.locator(".jaxcb-table-body [role=row]:visible")
    expect(rows.locator(".jaxcb-not-finite")).to_have_count(4)
    view.get_by_role("grid").focus()
    view.page.keyboard.press("End")
    view.get_by_role("button", name="Jump to the first call with NaN or infinity").click()
    first = view.locator(".jaxcb-table-body [aria-selected=true]:visible .jaxcb-table-sample")
    expect(first).to_have_text("-1 → nan")


def test_large_arrays_of_sampled_calls_have_their_range_and_number_of_nan(_ran):
    _ran.open()
    view = _ran.cell(3).locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    values = view.locator(".jaxcb-site-sample_values li")
    expect(values).to_have_text(
        "[-3, -2, -1, 0, 1, 2, …] (-3 to 36) → [nan, nan, nan, 0, 1, 1.41421, …] (0 to 6, 3 NaN)"
    )
    expect(values.locator(".jaxcb-not-finite")).to_have_text(["nan"] * 3 + ["3 NaN"])
