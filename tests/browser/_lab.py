"""A JupyterLab server, and a notebook in a browser page."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import nbformat

REPOSITORY = Path(__file__).parents[2]
BUILT = REPOSITORY / "jupyter_jaxcb" / "labextension"
WAIT_MS = 180_000  # two browsers on a slow machine need almost a minute


def browser_path():
    """Return the path of the system's Chromium; raise an error with advice if there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    raise RuntimeError(
        "no Chromium was found: install it with the system's package manager, as in "
        "apt-get install chromium"
    )


class Server:
    """A Jupyter server with separate settings; `app` is ``lab`` or ``notebook``."""

    def __init__(self, folder, app="lab", *, extension=True, disabled=()):
        self.root = folder / "root"
        self.root.mkdir(parents=True)
        # Kernels use sockets in files here, whose paths must be short. With ports, two servers that
        # start kernels at the same time may choose the same one, and both kernels hang.
        self._runtime = tempfile.TemporaryDirectory(prefix="jaxcb-")
        env = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": self._runtime.name,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        extensions = folder / "labextensions"
        extensions.mkdir()
        if extension:
            if not BUILT.is_dir():
                raise RuntimeError("the front end is not built: run `make frontend` first")
            (extensions / "jupyter-jaxcb").symlink_to(BUILT)
        self._settings(folder, disabled or ([] if extension else ["jupyter-jaxcb"]))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = (folder / "server.log").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jupyter", app, "--no-browser", "--allow-root",
             f"--ServerApp.root_dir={self.root}", f"--ServerApp.port={port}",
             "--ServerApp.port_retries=0", "--IdentityProvider.token=",
             "--KernelManager.transport=ipc",
             "--LabApp.expose_app_in_browser=True",
             "--JupyterNotebookApp.expose_app_in_browser=True",
             f"--LabApp.user_settings_dir={folder / 'user-settings'}",
             f"--LabApp.workspaces_dir={folder / 'workspaces'}",
             f"--LabServerApp.extra_labextensions_path={extensions}"],
            env=env, stdout=self._log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._wait()

    def _settings(self, folder, disabled):
        config = folder / "config" / "labconfig"
        config.mkdir(parents=True)
        names = {name: True for name in disabled}
        (config / "page_config.json").write_text(json.dumps({"disabledExtensions": names}))
        user = folder / "user-settings" / "@jupyterlab" / "apputils-extension"
        user.mkdir(parents=True)
        (user / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')

    def _wait(self):
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/api/status", timeout=5).close()
                return
            if self._process.poll() is not None:
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.1)
        raise RuntimeError(f"the server did not start:\n{Path(self._log.name).read_text()}")

    def write(self, name, cells, outputs=None):
        """Write a notebook of `cells`; return its name."""
        code_cells = [nbformat.v4.new_code_cell(source) for source in cells]
        for cell, saved in zip(code_cells, outputs or [], strict=False):
            cell.outputs = saved
        notebook = nbformat.v4.new_notebook(
            cells=code_cells,
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, self.root / name)
        return name

    def saved(self, name):
        return nbformat.read(self.root / name, as_version=4)

    def close(self):
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            # The server has stopped, but a thread of AnyIO that read files may keep its process.
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._runtime.cleanup()


def load(page, url):
    """Go to a page of JupyterLab and wait until it has loaded."""
    page.goto(url)
    page.wait_for_function("() => !!window.jupyterapp", timeout=WAIT_MS)


# Not awaited: Chromium may collect the promise of the command as garbage. Not for the current
# notebook: the command would still wait for the server when the notebook is closed, and reopen it.
OPEN = """path => {
  const { commands, shell } = window.jupyterapp;
  if (shell.currentWidget?.context?.path !== path) {
    commands.execute('docmanager:open', { path });
  }
}"""
# Waits until the kernel is ready, because one that is still starting would survive.
END = """async () => {
  const { sessionContext } = window.jupyterapp.shell.currentWidget;
  await sessionContext.ready;
  await sessionContext.shutdown();
}"""
CLOSE = """() => {
  const { shell } = window.jupyterapp;
  shell.collapseRight();
  shell.currentWidget.dispose();
}"""


class Notebook:
    """An open notebook in a JupyterLab page.

    Args:
        path: the URL path of a page to load with the notebook; None opens it in the current page.
    """

    def __init__(self, page, server, name, path="lab/tree"):
        self.page, self.server, self.name = page, server, name
        self.path = path
        self.open()

    def open(self):
        if self.path is None:
            self.page.evaluate(OPEN, self.name)
            self.page.wait_for_function(
                "path => window.jupyterapp.shell.currentWidget?.context?.path === path",
                arg=self.name,
                timeout=WAIT_MS,
            )
        else:
            load(self.page, f"{self.server.url}/{self.path}/{self.name}?reset")
        self.cell(0).wait_for(timeout=WAIT_MS)

    def reload(self):
        self.page.reload()
        self.page.wait_for_function("() => !!window.jupyterapp", timeout=WAIT_MS)
        # Until then, JupyterLab may show the notebook of before again.
        self.page.evaluate("async () => { await window.jupyterapp.restored; }")
        # JupyterLab then opens the notebook that the address names, which may be closed by then:
        # what is asked for later is answered later.
        self.command("filebrowser:open-path", path=self.name)
        self.cell(0).wait_for(timeout=WAIT_MS)

    def end_kernel(self):
        self.page.evaluate(END)

    def close(self):
        """End the kernel, close the tab, and collapse the right panel."""
        self.open()
        self.end_kernel()
        self.page.evaluate(CLOSE)

    def command(self, name, **args):
        self.page.evaluate(  # returns nothing, because the result cannot be serialized
            "async ([name, args]) => { await window.jupyterapp.commands.execute(name, args); }",
            [name, args],
        )

    def set_theme(self, theme):
        """Change the theme and wait for it: two changes at once confuse the splash screen."""
        self.command("apputils:change-theme", theme=theme)
        self.page.wait_for_function(
            "theme => document.body.dataset.jpThemeName === theme"
            " && !document.querySelector('#jupyterlab-splash')",
            arg=theme,
        )

    def wait_for_kernel(self):
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel"
            "?.connectionStatus === 'connected'",
            timeout=WAIT_MS,
        )

    def run(self, *numbers):
        """Run cells by number, by default all; do not wait for them."""
        self.wait_for_kernel()
        if not numbers:
            # Not awaited, because the command returns only when the cells have run.
            self.page.evaluate(
                "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
            )
        for number in numbers:
            self.page.evaluate(
                "n => { const panel = window.jupyterapp.shell.currentWidget;"
                "panel.content.activeCellIndex = n;"
                "window.jupyterapp.commands.execute('notebook:run-cell'); }",
                number,
            )

    def wait(self, *numbers):
        """Wait until these cells, by default all, have run.

        It reads their prompts, because the status of the kernel is unreliable.
        """
        self.page.wait_for_function(
            "numbers => { const cells = [...window.jupyterapp.shell.currentWidget.content.widgets]"
            ".filter((cell, n) => cell.model.type === 'code' && (!numbers.length ||"
            " numbers.includes(n)));"
            "return cells.every(cell => cell.model.executionCount !== null"
            " && !cell.promptNode.textContent.includes('*')); }",
            arg=list(numbers),
            timeout=WAIT_MS,
        )

    def run_and_wait(self, *numbers):
        self.run(*numbers)
        self.wait(*numbers)

    def save(self):
        self.command("docmanager:save")

    def cell(self, number):
        """Return a cell of the visible notebook."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell").nth(number)
