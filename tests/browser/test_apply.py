"""Options that advice proposes can be written into the cell that registers the callback."""

import pytest
from playwright.sync_api import expect

from ._cells import LOAD

SLOW = """import time, jupyter_jaxcb as jaxcb

@jaxcb.pure(result="day")
def simulate(day):
    time.sleep(0.001)
    return day"""
USE = "jax.vmap(simulate)(jnp.ones(12)).block_until_ready();"
SOURCE = """number => window.jupyterapp.shell.currentWidget.content.widgets[number]
  .model.sharedModel.getSource()"""
METHOD = 'vmap_method="expand_dims"'


@pytest.fixture
def slow(notebook):
    """Return a function that runs a slow vmap, and returns the notebook and its advice."""

    def run(*cells):
        opened = notebook(LOAD, *cells)
        opened.run_and_wait()
        view = opened.cell(len(cells)).locator(".jaxcb-view")
        view.locator(".jaxcb-disclosure").click()
        expect(view.locator(".jaxcb-site-advice")).to_contain_text("makes 1 call instead")
        return opened, view.get_by_role("button", name="write it into the cell: simulate")

    return run


def test_method_is_written_into_the_decorator_can_be_undone_and_checked(slow):
    opened, write = slow(SLOW, USE)
    badge = opened.cell(2).locator(".jaxcb-badge-note")
    expect(badge).to_contain_text("12 × vmap")
    write.click()
    line = f'@jaxcb.pure(result="day", {METHOD})'
    after = SLOW.replace('@jaxcb.pure(result="day")', line)
    opened.page.wait_for_function(f"([n, source]) => ({SOURCE})(n) === source", arg=[1, after])
    opened.page.get_by_role("button", name="Insert %jax_check").click()
    opened.page.wait_for_function(
        f"([n, source]) => ({SOURCE})(n) === source", arg=[3, "%jax_check simulate(day)"]
    )
    opened.run_and_wait(1, 2)
    expect(opened.cell(2).locator(".jaxcb-summary")).to_contain_text("1 call")
    opened.cell(1).locator(".cm-content").click()
    opened.page.keyboard.press("Control+z")
    opened.page.wait_for_function(f"([n, source]) => ({SOURCE})(n) === source", arg=[1, SLOW])


def test_method_is_copied_if_no_line_registers_the_callback(slow):
    wrapped = SLOW.replace('@jaxcb.pure(result="day")\n', "")
    wrapped += '\nsimulate = jaxcb.pure(simulate, result="day")'
    opened, write = slow(wrapped, USE)
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    write.click()
    expect(opened.page.locator(".Toastify")).to_contain_text(f"{METHOD} is copied")
    assert opened.page.evaluate("() => navigator.clipboard.readText()") == METHOD
    assert opened.page.evaluate(SOURCE, 1) == wrapped


LOG = """%%jax_callback debug
def log(loss):
    time.sleep(0.01)"""
WAITS = """%%jax_profile
step = lambda i, x: (log(x), x + i)[1]
jax.jit(lambda x: jax.lax.fori_loop(0, 20, step, x))(0.0).block_until_ready()
time.sleep(0.3)"""


@pytest.mark.long
def test_a_profile_proposes_a_queue_which_is_written_into_the_magic(notebook):
    opened = notebook(f"{LOAD}, time", LOG, WAITS)
    opened.run_and_wait()
    view = opened.cell(2).locator(".jaxcb-view")
    advice = view.locator(".jaxcb-profile-advice li", has_text="With queued=True it goes on")
    advice.get_by_role("button", name="write it into the cell: log").click()
    after = LOG.replace("debug", "debug --queued")
    notice = opened.page.locator(".Toastify")
    expect(notice).to_contain_text("now has --queued; Ctrl+Z in it removes that")
    opened.page.wait_for_function(f"([n, source]) => ({SOURCE})(n) === source", arg=[1, after])
    opened.run_and_wait(1, 2)
    expect(view.locator(".jaxcb-profile")).to_contain_text("queued host functions")
    expect(advice).to_have_count(0)
