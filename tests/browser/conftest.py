"""A real JupyterLab, a real kernel, a real Chromium."""

import contextlib

import playwright.sync_api
import pytest

from ._lab import WAIT_MS, Notebook, Server, browser_path, load

SAID_BY_OTHERS = {
    # Notebook 7.6, when it starts, also without our extension.
    "Cannot read properties of undefined (reading 'schema')",
    # anywidget, two seconds after a widget was closed whose module had not been loaded by then: the
    # view of a cell that ran for hardly longer than it takes to show one. Nothing is missing.
    "[anywidget] Failed to initialize model.",
    # JupyterLab, where a notebook is closed before its kernel has returned this: it asks for a
    # subshell as soon as the kernel is there.
    "Error: Canceled future for create_subshell_request message before replies were done",
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


class Desk:
    """Pages, and notebooks in them.

    JupyterLab is loaded once for each server, which takes seconds, and each test opens notebooks of
    its own in that page, with kernels of their own; they are closed when it ends.

    Attributes:
        errors: of scripts on any page, since they were last looked at.
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
        """The one page of a server, JupyterLab loaded in it."""
        if server not in self._pages:
            self._pages[server] = self.new_page()
            load(self._pages[server], f"{server.url}/lab?reset")
            self._pages[server].evaluate("async () => { await window.jupyterapp.restored; }")
        return self._pages[server]

    @contextlib.contextmanager
    def opened(self, name, cells, outputs=None, app="lab", on=None, **options):
        """A notebook of `cells`; `on`: in a page of its own, loaded with it."""
        server = self._servers(app, **options)
        name = server.write(f"{name}.ipynb".replace("/", "-"), cells, outputs)
        with self.showing(server, name, app, on) as notebook:
            yield notebook

    @contextlib.contextmanager
    def showing(self, server, name, app="lab", on=None):
        """The notebook `name` of a server."""
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
    """A test fails if a script on one of its pages did."""
    yield
    found, desk.errors[:] = list(desk.errors), []
    assert [error for error in found if error not in SAID_BY_OTHERS] == []


@pytest.fixture
def page(desk, servers):
    """The page in which `notebook` opens what it opens, with our extension in JupyterLab."""
    return desk.page(servers("lab"))


@pytest.fixture
def own_page(desk):
    """A page of the test's own, for what a page that others use must not be put through."""
    page = desk.new_page()
    yield page
    page.context.close()


@pytest.fixture
def notebook(request, desk):
    """Opens a notebook of cells in JupyterLab, or in another app or page."""
    with contextlib.ExitStack() as opened:

        def open_notebook(*cells, name=None, **options):
            return opened.enter_context(desk.opened(name or request.node.name, cells, **options))

        yield open_notebook
