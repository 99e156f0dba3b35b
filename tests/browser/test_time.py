"""The tab Time of a profiled cell, with a live kernel and in the notebook saved from it."""

import re

import pytest
from playwright.sync_api import expect

from ._cells import LOAD
from .test_accessibility import AXE, THEMES, check

SIMULATE = """import time
%%jax_callback pure --result x
def simulate(x):
    time.sleep(0.003)
    return x"""
PROFILED = """%%jax_profile
step = jax.jit(jax.vmap(simulate))
step(jnp.arange(50.0)).block_until_ready();"""
SLOW = """%%jax_callback pure --result x
def simulate(x):
    return x"""
WAITS = """simulate(1.0)
threading.Event().wait(0.6);"""
WITHOUT = """%%jax_profile
jnp.sort(jnp.arange(500.0)).block_until_ready();"""


@pytest.mark.long
def test_profiled_cell_opens_at_the_time_and_stays_so_when_saved(notebook, fresh_page):
    opened = notebook(LOAD, *SIMULATE.split("\n", 1), PROFILED, WITHOUT, on=fresh_page)
    opened.run_and_wait(0, 1, 2, 3, 4)
    view = opened.cell(3).locator(".jaxcb-view")
    expect(view.get_by_role("tab", name="Time")).to_have_attribute("aria-selected", "true")
    bar = view.locator(".jaxcb-profile-bar")
    expect(bar).to_have_attribute("aria-label", re.compile(r"s: .*\d+ % host functions"))
    advice = view.locator(".jaxcb-profile-advice")
    expect(advice).to_contain_text("simulate (line 3) took")
    expect(advice).to_contain_text("50 calls of ")
    expect(advice).to_contain_text("vmap_method='expand_dims' makes 1 instead;")
    table = view.get_by_role("table", name="Wall time by kind")
    expect(table.get_by_role("row", name=re.compile("^simulate line 3 .* 50$"))).to_be_visible()
    view.get_by_role("button", name="Show threads and devices").click()
    expect(view.get_by_role("button", name="Hide threads and devices")).to_be_visible()
    view.get_by_role("tab", name="Calls").click()  # gets the whole recording from the kernel
    expect(view.get_by_role("grid")).to_contain_text("element 0: 0 → 0")
    view.get_by_role("tab", name="Time").click()
    expect(bar).to_be_visible()
    alone = opened.cell(4).locator(".jaxcb-view")
    expect(alone.locator(".jaxcb-summary")).to_contain_text("% compilation")
    expect(alone.get_by_role("tab")).to_have_count(0)
    expect(alone.locator(".jaxcb-profile-bar")).to_be_visible()
    fresh_page.add_script_tag(path=AXE)
    for theme in THEMES:
        opened.set_theme(theme)
        check(fresh_page, ".jaxcb-view")
    opened.set_theme(THEMES[0])
    opened.save()
    opened.end_kernel()
    opened.reload()
    expect(view.get_by_role("tab", name="Time")).to_have_attribute("aria-selected", "true")
    expect(table).to_contain_text("simulate")


@pytest.mark.long
def test_a_cell_is_profiled_by_a_click_which_can_be_undone(notebook):
    opened = notebook(LOAD, SLOW, WAITS)
    opened.run_and_wait()
    view = opened.cell(2).locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    view.get_by_role("button", name="Profile this cell").click()
    expect(view.locator(".jaxcb-profile")).to_contain_text("idle")
    cell = opened.cell(2).locator(".cm-content")
    expect(cell).to_contain_text("%%jax_profile")
    cell.click()
    opened.page.keyboard.press("Control+z")
    expect(cell).not_to_contain_text("%%jax_profile")
    expect(cell).to_contain_text("simulate(1.0)")
