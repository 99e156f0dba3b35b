"""Run All on every notebook of the repository: no error that is not meant, every view is there."""

import nbformat
import pytest
from playwright.sync_api import expect

from ._lab import REPOSITORY, Notebook

MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"
PATHS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


def traces(notebook):
    """How many host traces each cell of a notebook has."""
    return {
        number: found
        for number, cell in enumerate(notebook.cells)
        if (found := sum(MIME in output.get("data", {}) for output in cell.get("outputs", [])))
    }


def failed(notebook):
    """The numbers of the cells that ended with an error."""
    return [
        number
        for number, cell in enumerate(notebook.cells)
        if any(output.output_type == "error" for output in cell.get("outputs", []))
    ]


def without_outputs(path):
    """The notebook at `path` as somebody gets it who has cleared it."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


@pytest.fixture
def tutorial(servers, page):
    """Opens a cleared copy of a notebook of the repository, and ends its kernel."""
    opened = []

    def open_tutorial(path):
        server = servers("lab")
        nbformat.write(without_outputs(path), server.root / path.name)
        opened.append(Notebook(page, server, path.name))
        return opened[0]

    yield open_tutorial
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_run_all_shows_every_host_trace_and_no_error_that_is_not_meant(path, tutorial):
    notebook = tutorial(path)
    notebook.run_and_wait()
    expected = nbformat.read(path, as_version=4)
    meant = [
        number
        for number, cell in enumerate(expected.cells)
        if "raises-exception" in cell.metadata.get("tags", [])
    ]
    for number, count in traces(expected).items():
        cell = notebook.cell(number)
        cell.scroll_into_view_if_needed()
        views = cell.locator(".jaxcb-view")
        expect(views).to_have_count(count)
        expect(views.last.locator(".jaxcb-summary")).to_be_visible()
    views.last.locator(".jaxcb-disclosure").click()
    expect(views.last.locator(".jaxcb-site").first).to_be_visible()
    notebook.save()
    notebook.page.wait_for_function(
        "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"
    )
    saved = notebook.server.saved(notebook.name)
    assert failed(saved) == meant
    assert traces(saved) == traces(expected)
