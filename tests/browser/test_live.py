"""While a cell runs, its live view, badges and panel show counts, also after a reload."""

import re

import nbformat
import pytest
from playwright.sync_api import expect

from ._cells import LOAD, WAITS, runs
from ._outputs import MIME_TYPE

# How long the calls took, if they took much of the time, depends on the machine.
ENDED = re.compile(r"step( [\d.]+ m?s \(\d+ %\))? · io · 400 calls")


@pytest.mark.long
def test_live_view_counts_calls_names_the_running_call_and_turns_into_the_trace(notebook, tmp_path):
    path = tmp_path / "go"
    opened = notebook(LOAD, WAITS, runs(path))
    opened.run(0, 1, 2)
    live = opened.cell(2).locator(".jaxcb-live")
    expect(live.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "75")
    expect(live).to_contain_text("300 of 400 calls")
    expect(live).to_contain_text("step")
    expect(live).to_contain_text("still running")
    expect(opened.cell(2).locator(".jaxcb-badge-note")).to_contain_text("300 calls")
    path.touch()
    opened.wait(2)
    expect(opened.cell(2).locator(".jaxcb-live")).to_have_count(0)
    expect(opened.cell(2).locator(".jaxcb-summary")).to_contain_text(ENDED)
    opened.save()
    (output,) = opened.server.saved(opened.name).cells[2].outputs
    assert MIME_TYPE in output.data and "widget-view" not in str(output)


@pytest.mark.kept
def test_live_view_of_a_python_loop_shows_how_far_the_run_is_and_no_end(notebook, tmp_path):
    path = tmp_path / "go"
    code = f"""path = {str(path)!r}
loop = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda i, y: step(y) + 1, x))
for n in range(24): loop(100.0 * n).block_until_ready()"""
    opened = notebook(LOAD, WAITS, code)
    opened.run(0, 1, 2)
    live = opened.cell(2).locator(".jaxcb-live-words")
    expect(live).to_contain_text("run 4 · 0 of 100 calls")
    expect(live).not_to_contain_text("left")
    bar = opened.cell(2).locator(".jaxcb-live").get_by_role("progressbar")
    expect(bar).not_to_have_attribute("aria-valuenow", re.compile("."))
    badge = opened.cell(2).locator(".jaxcb-badge-note")
    expect(badge).to_have_text(re.compile(r"⚠ 300 calls · running \d+ s"))
    expect(badge).to_have_class(re.compile("jaxcb-tone-warning"))
    path.touch()
    opened.wait(2)
    expect(badge).to_have_text(re.compile("[●⚠] 2,400 calls"))


def test_printed_text_is_in_one_piece_above_the_trace_of_a_cell_that_has_ended(notebook, tmp_path):
    path = tmp_path / "go"
    code = f"""from IPython.display import display
print("step 0")
{runs(path)}
print("step 1")
shown = display("a display", display_id=True)
print("step 2", file=__import__("sys").stderr)
7"""
    opened = notebook(LOAD, WAITS, code, "shown.update('an update')")
    opened.run(0, 1, 2)
    expect(opened.cell(2).locator(".jaxcb-live")).to_contain_text("300 of 400 calls")
    path.touch()
    opened.wait(2)
    outputs = opened.cell(2).locator(".jp-OutputArea-child")
    expect(outputs).to_have_count(5)
    expect(outputs.nth(0)).to_have_text("step 0\nstep 1\n")
    expect(outputs.nth(4)).to_contain_text(ENDED)
    opened.run_and_wait(3)  # JupyterLab still finds the displays of the user
    expect(outputs.nth(1)).to_contain_text("an update")
    opened.save()
    saved = opened.server.saved(opened.name).cells[2].outputs
    assert [output.get("text") or next(iter(output.data)) for output in saved] == [
        "step 0\nstep 1\n", "text/plain", "step 2\n", "text/plain", MIME_TYPE,
    ]  # fmt: skip
    opened.reload()
    expect(outputs).to_have_count(5)


def test_cell_that_the_user_stopped_is_gray_and_says_in_which_call(notebook, tmp_path):
    opened = notebook(LOAD, WAITS, runs(tmp_path / "go"))
    opened.run(0, 1, 2)
    expect(opened.cell(2).locator(".jaxcb-live")).to_contain_text("300 of 400 calls")
    opened.command("notebook:interrupt-kernel")
    stopped = "■ stopped by you in call 301"
    badge = opened.cell(2).locator(".jaxcb-badge-note")
    expect(badge).to_have_text(stopped)
    headline = opened.cell(2).locator(".jaxcb-summary-part").first
    expect(headline).to_have_text("■ step stopped by you in call 301")
    badge.click()
    row = opened.cell(2).locator(".jaxcb-site[aria-current] .jaxcb-status")
    expect(row).to_have_text(stopped)
    for gray in (badge, headline, row):
        expect(gray).to_have_class(re.compile("jaxcb-tone-quiet"))
    # Nor is there an error at the line of the host function, or among the calls.
    expect(opened.cell(1).locator(".jaxcb-tone-error")).to_have_count(0)
    opened.cell(2).get_by_role("tab", name="Calls").click()
    figures = opened.cell(2).locator(".jaxcb-distribution")
    expect(figures).to_contain_text("301 calls")
    expect(figures).not_to_contain_text("Failed")
    expect(opened.cell(2).get_by_text("failed only")).not_to_be_visible()
    expect(opened.cell(2).locator(".jaxcb-table-failed")).to_have_count(0)


# Resolves when the kernel has said that it is done with JupyterLab's request of a subshell.
SUBSHELL = """() => {
  const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
  window.subshell = new Promise(resolve => kernel.iopubMessage.connect((_, message) => {
    if (message.parent_header.msg_type === 'create_subshell_request'
        && message.content.execution_state === 'idle') {
      resolve();
    }
  }));
}"""


@pytest.mark.long
def test_kernel_is_busy_until_the_cell_ends_also_when_jupyterlab_starts_a_subshell_for_the_view(
    notebook, page, tmp_path
):
    path = tmp_path / "go"
    opened = notebook(LOAD, WAITS, runs(path))
    opened.run_and_wait(0, 1)
    page.evaluate(SUBSHELL)
    opened.run(2)
    page.evaluate("() => window.subshell")
    shown = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook-ExecutionIndicator"
    indicator = page.locator(shown)
    expect(indicator).to_have_attribute("data-status", "busy")
    path.touch()
    opened.wait(2)
    expect(indicator).to_have_attribute("data-status", "idle")


@pytest.mark.long
def test_live_view_of_a_kernel_that_ended_turns_into_a_sentence(notebook, tmp_path):
    opened = notebook(LOAD, WAITS, runs(tmp_path / "go"))
    opened.run(0, 1, 2)
    expect(opened.cell(2).locator(".jaxcb-live")).to_contain_text("300 of 400 calls")
    opened.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    expect(opened.cell(2).locator(".jaxcb-live")).to_have_count(0)
    expect(opened.cell(2).locator(".jp-OutputArea")).to_contain_text("the kernel ended")


@pytest.mark.long
def test_live_view_of_a_cell_that_ends_at_once_causes_no_error(notebook, page):
    opened = notebook(LOAD, WAITS, "import time\nfloat(step(0.0))\ntime.sleep(0.55)")
    opened.run(0, 1)
    for _ in range(3):
        opened.run_and_wait(2)
    page.wait_for_timeout(3_000)  # anywidget logs its error two seconds after a widget is closed
    expect(opened.cell(2).locator(".jaxcb-summary")).to_contain_text("step · io · 1 call")


@pytest.mark.long
def test_notebook_saved_while_a_cell_ran_shows_a_sentence(notebook):
    """Its widget is gone, so JupyterLab would show "Loading widget..." for ever."""
    widget = {"model_id": "0" * 32, "version_major": 2, "version_minor": 0}
    live = nbformat.v4.new_output(
        "display_data",
        data={
            "application/vnd.jupyter.widget-view+json": widget,
            "text/plain": "jupyter_jaxcb: the cell is still running",
        },
        metadata={"jupyter_jaxcb_live": True},
    )
    opened = notebook("1 + 1", outputs=[[live]])
    expect(opened.cell(0).locator(".jp-OutputArea")).to_have_text(re.compile("page was reloaded"))


@pytest.mark.long
def test_page_reloaded_while_a_cell_runs_has_its_badges_and_panel(notebook, fresh_page, tmp_path):
    path = tmp_path / "go"
    opened = notebook(LOAD, WAITS, runs(path), on=fresh_page)
    opened.run(0, 1, 2)
    badge = opened.cell(2).locator(".jaxcb-badge-note")
    expect(badge).to_contain_text("300 calls")
    opened.command("jupyter-jaxcb:open-panel")
    opened.save()
    opened.reload()
    expect(badge).to_contain_text("300 calls")
    opened.command("jupyter-jaxcb:open-panel")
    expect(opened.page.locator("#jupyter-jaxcb-panel")).to_contain_text("step")
    path.touch()
    expect(badge).to_contain_text("400 calls")
