"""A user's session: register, run, open the trace, watch a loop, stop it, see an error, reload."""

from playwright.sync_api import expect

from ._cells import DOUBLE, ELEMENTS, LOAD, USE, WAITS, runs

FAILS = """%%jax_callback pure --result x
def drag(x):
    if x < 0:
        raise ValueError(f"no drag below 0, such as {x}")
    return np.sqrt(x)"""
CELLS = LOAD, DOUBLE, USE, ELEMENTS, WAITS, FAILS, "jax.jit(drag)(-1.0)"
LOOP, ERROR = 7, 6


def test_session_from_registration_to_reload(notebook, fresh_page, tmp_path):
    opened = notebook(*CELLS, runs(tmp_path / "never"), on=fresh_page)
    opened.run_and_wait(0, 1, 2, 3, 4, 5)
    trace = opened.cell(2).locator(".jaxcb-view")
    expect(trace.locator(".jaxcb-summary")).to_contain_text("double, line 3: never called (unused)")
    trace.locator(".jaxcb-disclosure").click()
    expect(trace.locator(".jaxcb-site").nth(0)).to_contain_text("nothing uses its result")
    expect(opened.cell(2).locator(".jaxcb-badge-note").first).to_be_visible()
    opened.cell(3).locator(".jaxcb-disclosure").click()
    expect(opened.cell(3).locator(".jaxcb-view")).to_contain_text("1 call for 5 elements")

    opened.run(LOOP)
    expect(opened.cell(LOOP).locator(".jaxcb-live")).to_contain_text("300 of 400 calls")
    opened.command("notebook:interrupt-kernel")
    opened.wait(LOOP)
    expect(opened.cell(LOOP).locator(".jaxcb-live")).to_have_count(0)
    expect(opened.cell(LOOP).locator(".jp-OutputArea")).to_contain_text("KeyboardInterrupt")

    opened.run_and_wait(ERROR)
    output = opened.cell(ERROR).locator(".jp-OutputArea")
    expect(output).to_contain_text("ValueError: no drag below 0, such as -1.0")
    expect(output).not_to_contain_text("INTERNAL")

    opened.save()
    opened.reload()
    expect(opened.cell(2).locator(".jaxcb-summary")).to_contain_text("never called (unused)")
    expect(opened.cell(LOOP).locator(".jaxcb-summary")).to_contain_text("step")
