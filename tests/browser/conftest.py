"""Fixtures: real JupyterLab servers, real kernels and a real Chromium."""

import contextlib

import playwright.sync_api
import pytest

from ._lab import WAIT_MS, Notebook, Server, browser_path, load

UNRELATED_ERRORS = {
    # Notebook 7.6 logs this when it starts, even without our extension.
    "Cannot read properties of undefined (reading 'schema')",
    # JupyterLab requests a subshell as soon as the kernel is ready, and logs this if the notebook
    # is closed before the reply.
    "Error: Canceled future for create_subshell_request message before replies were done",
}

playwright.sync_api.expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def browser():
    with playwright.sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=browser_path(),
            args=["--no-sandbox"],
            ignore_default_args=["--hide-scrollbars"],  # users see them
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """Start each server once, with `servers("lab")` or `servers("notebook")`."""
    started = {}

    def start(app="lab", **options):
        key = (app, *sorted(options.items()))
        if key not in started:
            started[key] = Server(tmp_path_factory.mktemp(app), app, **options)
        return started[key]

    yield start
    for server in started.values():
        server.close()


class Desk:
    """Pages, and notebooks in them.

    Loading JupyterLab takes seconds, so each server has one page, in which each test opens its
    notebooks, with new kernels; they are closed when the test ends.

    Attributes:
        errors: errors of scripts on any page since the last check.
    """

    def __init__(self, browser, servers):
        self.errors = []
        self._browser, self._servers = browser, servers
        self._pages = {}

    def new_page(self):
        context = self._browser.new_context(viewport={"width": 1400, "height": 1000})
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def page(self, server):
        """Return the page of a server, in which JupyterLab is loaded."""
        if server not in self._pages:
            self._pages[server] = self.new_page()
            load(self._pages[server], f"{server.url}/lab?reset")
            self._pages[server].evaluate("async () => { await window.jupyterapp.restored; }")
        return self._pages[server]

    @contextlib.contextmanager
    def opened(self, name, cells, outputs=None, app="lab", on=None, **options):
        """Open a notebook of `cells`, in the page of its server or by loading the page `on`."""
        server = self._servers(app, **options)
        name = server.write(f"{name}.ipynb".replace("/", "-"), cells, outputs)
        with self.showing(server, name, app, on) as notebook:
            yield notebook

    @contextlib.contextmanager
    def showing(self, server, name, app="lab", on=None):
        """Open the notebook `name` of a server."""
        if on is not None:
            yield Notebook(on, server, name, "lab/tree" if app == "lab" else "notebooks")
            return
        notebook = Notebook(self.page(server), server, name, None)
        try:
            yield notebook
        finally:
            notebook.close()


@pytest.fixture(scope="session")
def desk(browser, servers):
    return Desk(browser, servers)


@pytest.fixture(autouse=True)
def _no_script_failed(desk):
    """Fail a test if a script on one of its pages fails."""
    yield
    found, desk.errors[:] = list(desk.errors), []
    assert [error for error in found if error not in UNRELATED_ERRORS] == []


@pytest.fixture
def page(desk, servers):
    """The page in which `notebook` opens notebooks: JupyterLab with our extension."""
    return desk.page(servers("lab"))


@pytest.fixture
def fresh_page(desk):
    """A new page, for tests that would disturb the page that others use."""
    page = desk.new_page()
    yield page
    page.context.close()


@pytest.fixture
def notebook(request, desk):
    """Return a function that opens a notebook of cells in JupyterLab, or in another app or page."""
    with contextlib.ExitStack() as opened:

        def open_notebook(*cells, name=None, **options):
            return opened.enter_context(desk.opened(name or request.node.name, cells, **options))

        yield open_notebook
