import base64
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import zlib
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Thousands of small programs are compiled and run once. LLVM may leave them as they are; what XLA
# does before that, which drops, merges and moves host calls, stays as it is for the user. Processes
# and kernels that tests start inherit it, benchmarks and the notebooks' run do not.
os.environ["XLA_FLAGS"] = " ".join(
    dict.fromkeys(
        [
            "--xla_backend_optimization_level=0",
            "--xla_llvm_disable_expensive_passes=true",
            # Newer versions end the process at this one, which they do not know.
            *(
                ["--xla_cpu_use_fusion_emitters=false"]
                if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
                else []
            ),
            *os.environ.get("XLA_FLAGS", "").split(),
        ]
    )
)

import hypothesis
import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import active
from jupyter_jaxcb.stack import cell_begins, cell_ends

# Before anything imports them: what they assert is shown as in tests.
pytest.register_assert_rewrite("tests.stack.elision._battery", "tests.diagnostics.explain._same")

ROOT = Path(__file__).parents[1]
MOST_EXECUTABLES = 500

# A shell starts what runs in the background with this signal ignored, and Python leaves it so.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every machine; `make fuzz` draws others.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
if os.environ.get("JAXCB_FUZZ_RANDOM") != "1":
    hypothesis.settings.load_profile("same")


SLOW_FIXTURES = {"in_process", "fresh_kernel", "terminal", "servers"}


def pytest_collection_modifyitems(items):
    """A test that starts a process, a kernel or a browser is none to run between two edits."""
    for item in items:
        if not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    # Files with slow tests first: what workers do last is short, so that they end at one time.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish():
    """Tests that look for what is gone collect garbage: not among all that is there to stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_recorder_left_behind():
    assert active() is None
    yield
    jax.effects_barrier()
    assert active() is None


@pytest.fixture(autouse=True, scope="module")
def _caches_stay_small():
    """JAX keeps the programs of every module that has run, some hundred MB of them."""
    yield
    if len(jax.devices()[0].client.live_executables()) > MOST_EXECUTABLES:
        jax.clear_caches()


@pytest.fixture
def nothing_compiled_before():
    """What is traced and compiled outside of a test is another test's."""
    jax.clear_caches()


class Compiles:
    """Counts programs compiled while it is entered."""

    def __enter__(self):
        self.count, self.entered = 0, True
        jax.monitoring.register_event_duration_secs_listener(self.hear)
        return self

    def hear(self, event, duration, **facts):
        # JAX 0.8 has no public way to take a listener away: this one just stops counting.
        self.count += self.entered and event.endswith("backend_compile_duration")

    def __exit__(self, *exc):
        self.entered = False


@pytest.fixture
def compiles():
    """``with compiles() as counted:``, then ``counted.count`` programs were compiled."""
    return Compiles


class Ended(subprocess.CompletedProcess):
    """A process that has ended."""

    @property
    def value(self):
        """The JSON in the last line that it printed."""
        return json.loads(self.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def in_process():
    """``in_process(program, *arguments)``: runs a Python program in a process of its own.

    `program` is the path of a file, the lines of a program, or ``["-m", module]``. It finds the
    tests and the package, and JAX has as many CPU `devices` there; other keywords are variables of
    its environment. It has to end with `status` (None: any) before a time that nothing takes: a
    hang is a failure.
    """

    def run(
        program, *arguments, devices=1, options=(), status=0, seconds=240, cwd=None, **variables
    ):
        started = program if isinstance(program, list) else [str(program)]
        if isinstance(program, str):
            started = ["-c", textwrap.dedent(program)]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "JAX_PLATFORMS": "cpu",
            "JAX_NUM_CPU_DEVICES": str(devices),
            **variables,
        }
        done = subprocess.run(
            [sys.executable, *options, *started, *map(str, arguments)],
            env=environment, cwd=cwd, capture_output=True, text=True, timeout=seconds,
        )  # fmt: skip
        ended = f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
        assert status is None or done.returncode == status, ended
        return Ended(done.args, done.returncode, done.stdout, done.stderr)

    return run


class Notebook:
    """Executes cells as the extension has them executed."""

    def __init__(self):
        self.names = {"jaxcb": jaxcb, "__name__": "__main__"}

    def run(self, source, cell=None, file="ipykernel_1/1.py"):
        with self.running(cell):
            exec(compile(source, file, "exec"), self.names)

    @contextlib.contextmanager
    def running(self, cell=None):
        run = cell_begins(self.names, cell)
        try:
            yield
        finally:
            cell_ends(run)


@pytest.fixture
def notebook():
    """``notebook.run(source, cell)``: a cell runs, again if one with the id `cell` has run."""
    return Notebook()


@pytest.fixture(scope="session")
def unpacked():
    """Rows (start, duration, element, way, thread, error) of call columns, plain or as saved."""

    def unpack(columns):
        rows, unit = columns["rows"], columns["unit_ns"]
        raw = columns.get("raw")
        if raw is None:
            raw = zlib.decompress(base64.b64decode(columns["zlib"]))
        found, offset = [], 0
        for kind in ("<u4", "<u4", "<i4", "<u2", "<u2", "<u2"):
            width = np.dtype(kind).itemsize
            column = np.frombuffer(raw, np.uint8, rows * width, offset)
            if "zlib" in columns:
                column = np.ascontiguousarray(column.reshape(width, rows).T)
            found.append(column.view(kind).reshape(rows).tolist())
            offset += rows * width
        assert offset == len(raw)
        starts = (np.cumsum(np.array(found[0], np.int64)) * unit).tolist()
        durations = [duration * unit for duration in found[1]]
        return list(zip(starts, durations, *found[2:], strict=True))

    return unpack
