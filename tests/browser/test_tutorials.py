"""The notebooks of the repository show all their host traces, as saved and after a run."""

import contextlib

import nbformat
import pytest
from playwright.sync_api import expect

from ._lab import REPOSITORY

MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"
PATHS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


def traces(notebook):
    """Return the number of host traces of each cell that has any."""
    return {
        number: found
        for number, cell in enumerate(notebook.cells)
        if (found := sum(MIME in output.get("data", {}) for output in cell.get("outputs", [])))
    }


def failed(notebook):
    """Return the numbers of the cells that failed."""
    return [
        number
        for number, cell in enumerate(notebook.cells)
        if any(output.output_type == "error" for output in cell.get("outputs", []))
    ]


def without_outputs(path):
    """Return the notebook at `path` without its outputs."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


@pytest.fixture
def tutorial(servers, desk):
    """Return a function that opens a notebook under a name."""
    with contextlib.ExitStack() as opened:

        def open_tutorial(name, notebook):
            server = servers("lab")
            nbformat.write(notebook, server.root / name)
            return opened.enter_context(desk.showing(server, name))

        yield open_tutorial


def check_views(notebook, expected):
    """Check that each host trace in `expected` has a view, and that the last one opens."""
    for number, count in traces(expected).items():
        cell = notebook.cell(number)
        cell.scroll_into_view_if_needed()
        views = cell.locator(".jaxcb-view")
        expect(views).to_have_count(count)
        expect(views.last.locator(".jaxcb-summary")).to_be_visible()
    button = views.last.locator(".jaxcb-disclosure")
    if button.get_attribute("aria-expanded") == "true":  # a profile opens at the tab Time
        views.last.get_by_role("tab", name="Sites").click()
    else:
        button.click()
    expect(views.last.locator(".jaxcb-site").first).to_be_visible()


# One notebook has tables of watched values only.
WITH_TRACES = [path for path in PATHS if traces(nbformat.read(path, as_version=4))]


@pytest.mark.long
@pytest.mark.parametrize("path", WITH_TRACES, ids=lambda path: path.stem)
def test_saved_notebook_shows_every_host_trace(path, tutorial):
    saved = nbformat.read(path, as_version=4)
    check_views(tutorial(f"saved-{path.name}", saved), saved)


# nbval checks that all notebooks run and checks their outputs. The browser also checks that the
# front end and the kernel work together while they run, for the first notebook and for the one with
# the most intended errors.
RUN = [path for path in PATHS if path.stem.endswith(("-quickstart", "-errors-and-contracts"))]


@pytest.mark.long
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_run_all_shows_every_host_trace_and_only_intended_errors(path, tutorial):
    notebook = tutorial(path.name, without_outputs(path))
    notebook.run_and_wait()
    expected = nbformat.read(path, as_version=4)
    intended = [
        number
        for number, cell in enumerate(expected.cells)
        if "raises-exception" in cell.metadata.get("tags", [])
    ]
    check_views(notebook, expected)
    notebook.save()
    notebook.page.wait_for_function(
        "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"
    )
    saved = notebook.server.saved(notebook.name)
    assert failed(saved) == intended
    assert traces(saved) == traces(expected)
