"""The notebooks of the repository, saved or just run, show every view that they have."""

import contextlib

import nbformat
import pytest
from playwright.sync_api import expect

from ._lab import REPOSITORY

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
def tutorial(servers, desk):
    """Opens a notebook under a name of its own."""
    with contextlib.ExitStack() as opened:

        def open_tutorial(name, notebook):
            server = servers("lab")
            nbformat.write(notebook, server.root / name)
            return opened.enter_context(desk.showing(server, name))

        yield open_tutorial


def check_views(notebook, expected):
    """Every host trace of the cells of `expected` is a view, and the last one opens."""
    for number, count in traces(expected).items():
        cell = notebook.cell(number)
        cell.scroll_into_view_if_needed()
        views = cell.locator(".jaxcb-view")
        expect(views).to_have_count(count)
        expect(views.last.locator(".jaxcb-summary")).to_be_visible()
    views.last.locator(".jaxcb-disclosure").click()
    expect(views.last.locator(".jaxcb-site").first).to_be_visible()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebook_as_it_is_saved_shows_every_host_trace(path, tutorial):
    saved = nbformat.read(path, as_version=4)
    check_views(tutorial(f"saved-{path.name}", saved), saved)


# That all of them run, and to what, nbval says. A browser adds that front end and kernel find each
# other while they do: in the first notebook, and in the one with the most errors that are meant.
RUN = [path for path in PATHS if path.name.startswith(("01-", "07-"))]


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_run_all_shows_every_host_trace_and_no_error_that_is_not_meant(path, tutorial):
    notebook = tutorial(path.name, without_outputs(path))
    notebook.run_and_wait()
    expected = nbformat.read(path, as_version=4)
    meant = [
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
    assert failed(saved) == meant
    assert traces(saved) == traces(expected)
