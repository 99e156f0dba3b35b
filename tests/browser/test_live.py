"""While a cell runs, its live view, badges and panel show counts, also after a reload."""

from playwright.sync_api import expect

from ._cells import LOAD, WAITS, runs


def test_live_view_counts_calls_names_the_running_call_and_is_removed(notebook, tmp_path):
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
    expect(opened.cell(2).locator(".jaxcb-summary")).to_contain_text("step · io · 400 calls")
    opened.save()
    outputs = opened.server.saved(opened.name).cells[2].outputs
    assert "widget-view" not in str(outputs[:-1])


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
