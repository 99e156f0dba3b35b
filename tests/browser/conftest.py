"""A real JupyterLab, a real kernel, a real Chromium."""

import playwright.sync_api
import pytest

from ._lab import WAIT_MS, Notebook, Server, browser_path

# Notebook 7.6 says this when it starts, also without our extension.
NOTEBOOK_7 = "Cannot read properties of undefined (reading 'schema')"

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
    assert [error for error in errors if error != NOTEBOOK_7] == []


@pytest.fixture
def notebook(request, servers, page):
    """Opens a notebook of cells in JupyterLab, or in another app or page."""

    def open_notebook(*cells, app="lab", on=None, outputs=None, name=None, **options):
        server = servers(app, **options)
        name = server.write(f"{name or request.node.name}.ipynb".replace("/", "-"), cells, outputs)
        path = "lab/tree" if app == "lab" else "notebooks"
        return Notebook(on or page, server, name, path)

    return open_notebook
