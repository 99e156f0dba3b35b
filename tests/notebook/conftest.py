"""A real kernel, and IPython in a real terminal's place."""

import contextlib
import dataclasses
import os
import re
import sys

import jupyter_client
import pytest

WIDGET = "application/vnd.jupyter.widget-view+json"
MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"


@dataclasses.dataclass
class Ran:
    """What one cell put out."""

    text: str = ""  # of its streams
    value: str | None = None  # text/plain of Out
    traces: list = dataclasses.field(default_factory=list)  # (data, metadata) of host traces
    shown: list = dataclasses.field(default_factory=list)  # (data, metadata) of other displays
    error: tuple | None = None  # (name, message, traceback without colours)
    order: list = dataclasses.field(default_factory=list)

    @property
    def trace(self):
        """The data of the one host trace."""
        ((data, _),) = self.traces
        return data

    @property
    def sites(self):
        return self.trace[MIME]["sites"]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class Kernel:
    def __init__(self):
        self.manager = jupyter_client.KernelManager(kernel_name="python3")
        # The interpreter that runs the tests, whatever kernels the machine knows.
        self.manager.kernel_spec.argv[0] = sys.executable
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        self.manager.start_kernel(env=env)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.results = True

    def run(self, code, cell=None, **options):
        """Runs a cell; `cell` is its id, which JupyterLab says and nbclient does not."""
        ran = Ran()

        def collect(message):
            kind, content = message["msg_type"], message["content"]
            if set(content.get("data", {})) == {WIDGET}:
                return  # the live view of a cell that takes its time
            if kind in ("stream", "execute_result", "display_data", "error"):
                ran.order.append("trace" if MIME in content.get("data", {}) else kind)
            if kind == "stream":
                ran.text += plain(content["text"])
            elif kind == "error":
                frames = plain("\n".join(content["traceback"]))
                ran.error = (content["ename"], content["evalue"], frames)
            elif kind in ("display_data", "execute_result"):
                pair = (content["data"], content["metadata"])
                (ran.traces if MIME in content["data"] else ran.shown).append(pair)
                if kind == "execute_result":
                    ran.value = content["data"]["text/plain"]

        if cell is not None:
            self.run_cell(code, cell, collect)
            return ran
        with self._asked():
            self.client.execute_interactive(
                code,
                output_hook=collect,
                timeout=120,
                allow_stdin=False,
                stop_on_error=False,
                **options,
            )
        return ran

    @contextlib.contextmanager
    def _asked(self):
        """Notes it if no result comes, so that the tests after this one do not wait too."""
        self.results, results = False, self.results
        yield
        self.results = results

    def ask(self, kind, content, receive, metadata=None):
        """Sends a message as a front end does; `receive` gets each message that follows."""
        message = self.client.session.msg(kind, content, metadata=metadata)
        self.client.shell_channel.send(message)
        number = message["header"]["msg_id"]
        with self._asked():
            while True:
                recorded = self.client.get_iopub_msg(timeout=120)
                if recorded["parent_header"].get("msg_id") != number:
                    continue
                receive(recorded)
                if recorded["content"].get("execution_state") == "idle":
                    break

    def run_cell(self, code, cell, receive):
        """Runs `code` as JupyterLab does, which says which cell it is."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        self.ask("execute_request", content, receive, {"cellId": cell} if cell else {})
        self.client.get_shell_msg(timeout=60)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="session")
def fresh_kernel():
    """Starts kernels; they end with the tests."""
    kernels = []

    def start():
        kernels.append(Kernel())
        return kernels[-1]

    yield start
    for kernel in kernels:
        kernel.close()


@pytest.fixture(scope="session")
def _shared_kernel(fresh_kernel):
    """The kernel that tests share; a new one after a test that left it without a result."""
    kernels = []

    def kernel():
        if not kernels or not kernels[-1].results:
            kernels.append(fresh_kernel())
            kernels[-1].run("import jax, jax.numpy as jnp, numpy as np, scipy.special")
            kernels[-1].run("names_of_all_tests = {*globals(), 'names_of_all_tests'}")
        return kernels[-1]

    return kernel


_FORGET = """for name in {*globals()} - names_of_all_tests:
    del globals()[name]
%load_ext jupyter_jaxcb"""


@pytest.fixture
def kernel(_shared_kernel):
    """One kernel for many tests; none sees names that another defined, or its registrations."""
    kernel = _shared_kernel()
    assert kernel.run(_FORGET).error is None
    yield kernel
    if kernel.results:
        kernel.run("%unload_ext jupyter_jaxcb")


@pytest.fixture
def terminal(in_process, tmp_path):
    """Runs cells in IPython as a terminal shows them; returns all output as text."""

    def run(*cells):
        script = tmp_path / "session.py"
        body = "\n".join(f"shell.run_cell({cell!r}, store_history=True)" for cell in cells)
        script.write_text(
            "from IPython.terminal.interactiveshell import TerminalInteractiveShell\n"
            f"shell = TerminalInteractiveShell.instance(colors='nocolor')\n{body}\n"
        )
        done = in_process(script, IPYTHONDIR=str(tmp_path))
        return plain(done.stdout + done.stderr)

    return run
