"""Fixtures: a real kernel, and a terminal IPython in a subprocess."""

import contextlib
import dataclasses
import os
import re
import sys

import jupyter_client
import pytest

from tests._site_schema import complete

MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"


@dataclasses.dataclass
class Ran:
    """The output of one cell."""

    text: str = ""  # of stdout and stderr
    value: str | None = None  # text/plain of Out
    number: int | None = None  # of Out
    traces: list = dataclasses.field(default_factory=list)  # (data, metadata) of host traces
    shown: list = dataclasses.field(default_factory=list)  # (data, metadata) of other displays
    error: tuple | None = None  # (name, message, traceback without colors)
    order: list = dataclasses.field(default_factory=list)

    @property
    def trace(self):
        """The data of the only host trace."""
        ((data, _),) = self.traces
        return data

    @property
    def sites(self):
        return [complete(one) for one in self.trace[MIME]["sites"]]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class Kernel:
    def __init__(self, folder=None):
        self.manager = jupyter_client.KernelManager(kernel_name="python3")
        if folder is not None:
            self.manager.connection_file = str(folder / "kernel.json")
        # Use the interpreter of the tests, whichever kernels the machine has.
        self.manager.kernel_spec.argv[0] = sys.executable
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        self.manager.start_kernel(env=env)
        self._connect()

    def _connect(self):
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.responds = True

    def restart(self):
        """Restart as a front end does with a kernel that does not respond."""
        self.client.stop_channels()
        self.manager.restart_kernel(now=True)
        self._connect()

    def run(self, code, cell=None, **options):
        """Run a cell; `cell` is its id, which JupyterLab sends and nbclient does not."""
        ran = Ran()

        def collect(message):
            kind, content = message["msg_type"], message["content"]
            if content.get("metadata", {}).get("jupyter_jaxcb_live"):
                return  # the live view of a cell that takes long
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
                    ran.number = content["execution_count"]

        if cell is not None:
            self.run_cell(code, cell, collect)
            return ran
        with self._expecting_response():
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
    def _expecting_response(self):
        """Mark the kernel if it does not respond, so that later tests do not wait for it too."""
        self.responds, before = False, self.responds
        yield
        self.responds = before

    def request(self, kind, content, receive, metadata=None):
        """Send a message as a front end does; `receive` gets each message that follows."""
        message = self.client.session.msg(kind, content, metadata=metadata)
        self.client.shell_channel.send(message)
        number = message["header"]["msg_id"]
        with self._expecting_response():
            while True:
                response = self.client.get_iopub_msg(timeout=120)
                if response["parent_header"].get("msg_id") != number:
                    continue
                receive(response)
                if response["content"].get("execution_state") == "idle":
                    break

    def run_cell(self, code, cell, receive):
        """Run `code` as JupyterLab does, which sends the id of the cell."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        self.request("execute_request", content, receive, {"cellId": cell} if cell else {})
        self.client.get_shell_msg(timeout=60)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@contextlib.contextmanager
def _kernels():
    """Yield a function that starts kernels, which end with the block."""
    kernels = []

    def start(folder=None):
        kernels.append(Kernel(folder))
        return kernels[-1]

    yield start
    for kernel in kernels:
        kernel.close()


@pytest.fixture
def fresh_kernel():
    """Return a function that starts kernels, which run until the end of the test.

    A kernel has its connection file in `folder`, if given. Some tests leave one that computes
    without end.
    """
    with _kernels() as start:
        yield start


@pytest.fixture(scope="session")
def lasting_kernel():
    """Return a function that starts kernels, which run until the end of the session."""
    with _kernels() as start:
        yield start


@pytest.fixture(scope="session")
def _shared_kernel(lasting_kernel):
    """Return a function that returns the shared kernel, or a new one if it does not respond."""
    kernels = []

    def kernel():
        if not kernels or not kernels[-1].responds:
            kernels.append(lasting_kernel())
            kernels[-1].run("import jax, jax.numpy as jnp, numpy as np, scipy.special")
            # Some tests collect garbage often: not among what these modules keep forever.
            kernels[-1].run("import gc, jupyter_jaxcb; gc.collect(); gc.freeze(); del gc")
            kernels[-1].run("names_of_all_tests = {*globals(), 'names_of_all_tests'}")
        return kernels[-1]

    return kernel


_FORGET = """for name in {*globals()} - names_of_all_tests:
    del globals()[name]
%load_ext jupyter_jaxcb"""


@pytest.fixture
def kernel(_shared_kernel):
    """A kernel shared by many tests, without names or registrations of earlier tests."""
    kernel = _shared_kernel()
    assert kernel.run(_FORGET).error is None
    yield kernel
    if kernel.responds:
        kernel.run("%unload_ext jupyter_jaxcb")


@pytest.fixture
def terminal(in_process, tmp_path):
    """Return a function that runs cells in a terminal IPython and returns all output as text."""

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
