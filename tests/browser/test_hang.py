"""The live view of a cell that hangs says so, and restarts the kernel."""

import pytest
from playwright.sync_api import expect

from ..notebook.session._stuck import AT_ONCE, HOSTS

LOAD = "%load_ext jupyter_jaxcb\n%jax_callbacks --stacks-after 1"
DEADLOCK = "No host call has returned for"


@pytest.mark.long
def test_deadlock_is_explained_and_its_kernel_restarted_with_a_click(notebook, page):
    opened = notebook(LOAD, HOSTS + AT_ONCE, "run(transmission)", "%load_ext jupyter_jaxcb")
    opened.run(0, 1, 2)
    notice = opened.cell(2).locator(".jaxcb-hang")
    expect(notice).to_contain_text(DEADLOCK)
    expect(notice).to_contain_text("This looks like a deadlock.")
    expect(notice.locator("pre")).not_to_be_visible()
    notice.get_by_text("why, and where each host call is").click()
    expect(notice).to_contain_text("a program that waits for it: a deadlock. Use NumPy")
    where = "in transmission: return np.asarray(results[0])"
    expect(notice.locator("pre")).to_contain_text(where)
    notice.get_by_role("button", name="Restart kernel").click()
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    expect(opened.cell(2).locator(".jp-OutputArea")).to_contain_text("the kernel ended")
    expect(notice).to_have_count(0)
    opened.run_and_wait(3)
    expect(opened.cell(3).locator(".jp-OutputArea")).to_contain_text("jaxcb.load(")


@pytest.mark.long
def test_notice_goes_when_the_calls_go_on(notebook, tmp_path):
    path = tmp_path / "go"
    wait = "calls += [0] * (len(calls) == 2)\nfor n in range(3):\n    jaxcb.pure_callback("
    opened = notebook(
        LOAD,
        f"{HOSTS}\npipe = {str(path)!r}",
        f"{wait}waits_at_the_second_and_the_tenth, S, 1.0)\nforever(pipe)",
    )
    opened.run(0, 1, 2)
    notice = opened.cell(2).locator(".jaxcb-hang")
    expect(notice).to_contain_text("This looks like a wait for")
    path.with_name("go.2").touch()
    expect(notice).not_to_be_visible()
    path.touch()
    opened.wait(2)
    opened.save()
    saved = opened.server.saved(opened.name).cells[2].outputs
    assert DEADLOCK not in str(saved)


def test_slow_function_is_named_and_ends_with_the_stop_button(notebook):
    opened = notebook(LOAD, HOSTS + AT_ONCE, "run(loops)")
    opened.run(0, 1, 2)
    notice = opened.cell(2).locator(".jaxcb-hang")
    expect(notice).to_contain_text("This looks like a slow function.")
    notice.get_by_text("why, and where each host call is").click()
    expect(notice).to_contain_text("it computes at line")
    expect(notice.locator("pre")).to_contain_text(", in loops: ")
    opened.command("notebook:interrupt-kernel")
    opened.wait(2)
    expect(notice).to_have_count(0)
    expect(opened.cell(2).locator(".jp-OutputArea")).to_contain_text("KeyboardInterrupt")
    expect(opened.cell(2).locator(".jaxcb-summary")).to_contain_text("loops")
