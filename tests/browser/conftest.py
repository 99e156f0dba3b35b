"""A real JupyterLab, a real kernel, a real Chromium."""

import playwright.sync_api
import pytest

from ._lab import WAIT_MS, Notebook, Server, browser_path

SAID_BY_OTHERS = {
    # Notebook 7.6, when it starts, also without our extension.
    "Cannot read properties of undefined (reading 'schema')",
    # anywidget, two seconds after a widget was closed whose module had not been loaded by then: the
    # view of a cell that ran for hardly longer than it takes to show one. Nothing is missing.
    "[anywidget] Failed to initialize model.",
}

playwright.sync_api.expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def browser():
    with playwright.sync_api.sync_playwright() as driver:
        own = driver.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield own
        own.close()


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """Starts servers, each once: `servers("lab")`, `servers("notebook")`."""
    started = {}

    def start(app="lab", **options):
        key = (app, *sorted(options.items()))
        if key not in started:
            started[key] = Server(tmp_path_factory.mktemp(app), app, **options)
        return started[key]

    yield start
    for server in started.values():
        server.close()


@pytest.fixture
def page(browser):
    """A page; the test fails if a script on it did."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert [error for error in errors if error not in SAID_BY_OTHERS] == []


@pytest.fixture
def notebook(request, servers, page):
    """Opens a notebook of cells in JupyterLab, or in another app or page."""

    def open_notebook(*cells, app="lab", on=None, outputs=None, name=None, **options):
        server = servers(app, **options)
        name = server.write(f"{name or request.node.name}.ipynb".replace("/", "-"), cells, outputs)
        path = "lab/tree" if app == "lab" else "notebooks"
        return Notebook(on or page, server, name, path)

    return open_notebook
