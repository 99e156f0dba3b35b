import base64
import contextlib
import functools
import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import zlib
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compilers optimize less: the tests compile thousands of programs and run each once. XLA's own
# passes, which remove, deduplicate and hoist host calls, run as they do for users. Processes and
# kernels that tests start inherit this; benchmarks and `run_notebooks` do not.
# `make test-all PLAIN=1` runs the tests as slowly as users' programs.
if not os.environ.get("JAXCB_TESTS_PLAIN"):
    os.environ["XLA_FLAGS"] = " ".join(
        dict.fromkeys(
            [
                "--xla_backend_optimization_level=0",
                "--xla_llvm_disable_expensive_passes=true",
                # Newer versions abort the process because they do not know this flag.
                *(
                    ["--xla_cpu_use_fusion_emitters=false"]
                    if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
                    else []
                ),
                *os.environ.get("XLA_FLAGS", "").split(),
            ]
        )
    )
    os.environ["NUMBA_OPT"] = "1"
    # A cache of its own, since its code is less optimized than that of users.
    os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).parents[1] / ".pytest_cache" / "numba")

import hypothesis
import jax
import numpy as np
import pytest
from jax._src.interpreters import mlir

import jupyter_jaxcb as jaxcb
from tests import _front_end_rules, kept, upgraded
from tests.interface import Recorder, active, cell_begins, cell_ends

# Before anything imports them, so that pytest explains their failed assertions like those of tests.
pytest.register_assert_rewrite("tests.stack.elision._battery", "tests.diagnostics.explain._same")

ROOT = Path(__file__).parents[1]
MOST_EXECUTABLES = 500

# A shell starts background jobs with SIGINT ignored, and Python keeps it ignored.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hypothesis draws the same examples on every machine.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.load_profile("same")


class SharedContext(threading.local):
    """Makes many lowerings of a thread use one MLIR context.

    JAX makes a context for each lowering, which takes a fifth of the time of these tests. A context
    keeps every constant that was in it, so a new one is made now and then. A program that is
    lowered while another one is (a constant that a rule computes) needs its own.
    """

    def __init__(self, make):
        self.make, self.uses = make, 0

    def __call__(self):
        if mlir.ir.Context.current is not None:
            return self.make()
        if self.uses % 200 == 0:
            self.context = self.make()
        self.uses += 1
        return self.context


# Without this function of JAX, the tests are only slower.
if not os.environ.get("JAXCB_TESTS_PLAIN") and hasattr(mlir, "make_ir_context"):
    mlir.make_ir_context = SharedContext(mlir.make_ir_context)


def pytest_ignore_collect(collection_path):
    """Leave out files without tests, which pytest would import for doctests: some are programs."""
    name = collection_path.name
    return (name.endswith(".py") and not name.startswith("test_")) or None


SLOW_FIXTURES = {
    "in_process",
    "without_reader",
    "fresh_kernel",
    "lasting_kernel",
    "terminal",
    "servers",
}


def pytest_collection_modifyitems(items):
    """Mark tests that start a process, a kernel or a browser as slow, and run their files first."""
    for item in items:
        if not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    # Slow files first: the files left at the end are short, so all pytest workers finish together.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    kept.mark(items)
    upgraded.mark(items)


def pytest_collection_finish():
    """Keep permanent objects out of the garbage collections that some tests run."""
    gc.collect()
    gc.freeze()
    # By default Python collects after 700 new objects, and programs are thousands: a twentieth of
    # the time of these tests. Those of garbage collect it themselves.
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def _no_recorder_left_behind():
    assert active() is None
    yield
    jax.effects_barrier()
    assert active() is None


_made = []  # the recordings of the running test


@functools.wraps(_freeze := Recorder.freeze)
def _freeze_and_keep(*args, **kwargs):
    recording = _freeze(*args, **kwargs)
    _made.append(recording)
    return recording


Recorder.freeze = _freeze_and_keep


@pytest.fixture(autouse=True)
def _front_end_can_show_every_recording():
    yield
    made, _made[:] = _made[:], []
    for recording in made:
        _front_end_rules.check(recording)


@pytest.fixture(autouse=True, scope="module")
def _caches_stay_small():
    """Clear JAX's caches, which would keep hundreds of MB of programs from earlier test modules."""
    yield
    if len(jax.devices()[0].client.live_executables()) > MOST_EXECUTABLES:
        jax.clear_caches()


@pytest.fixture
def nothing_compiled_before():
    """Clear JAX's caches, so that earlier tests have traced and compiled nothing."""
    jax.clear_caches()


class Compiles:
    """A context manager that counts the programs compiled inside it."""

    def __enter__(self):
        self.count, self.entered = 0, True
        jax.monitoring.register_event_duration_secs_listener(self.on_event)
        return self

    def on_event(self, event, duration, **facts):
        self.count += self.entered and event.endswith("backend_compile_duration")

    def __exit__(self, *exc):
        self.entered = False


@pytest.fixture
def compiles():
    """After ``with compiles() as counted: ...``, ``counted.count`` programs were compiled."""
    return Compiles


class Ended(subprocess.CompletedProcess):
    """A process that has ended."""

    @property
    def value(self):
        """The JSON in the last line it printed."""
        return json.loads(self.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def in_process():
    """``in_process(program, *arguments)`` runs a Python program in its own process.

    `program` is the path of a file, source code, or ``["-m", module]``. The process can import the
    tests and the package, and JAX has `devices` CPU devices in it. Other keywords become
    environment variables. The exit status must be `status` (None: any). `seconds` is far longer
    than any program takes, so a timeout means that the process hangs.
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


@pytest.fixture
def without_reader():
    """``without_reader(*arguments)`` runs the command as in ``command | true``: nothing reads it.

    With `of_errors` nothing reads standard error either, as in ``command 2>&1 | true``.
    """

    def run(*arguments, of_errors=False, cwd=None):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            return subprocess.run(
                [sys.executable, "-m", "jupyter_jaxcb", *map(str, arguments)],
                stdout=writer, stderr=writer if of_errors else subprocess.PIPE, text=True, cwd=cwd,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "",
                     "JAX_PLATFORMS": "cpu"}, timeout=240,
            )  # fmt: skip
        finally:
            os.close(writer)

    return run


class Notebook:
    """Runs cells the way the extension does."""

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
    """``notebook.run(source, cell)`` runs a cell, again if the id `cell` has run before."""
    return Notebook()


@pytest.fixture(scope="session")
def unpacked():
    """Unpack call columns to rows (start, duration, element, variant, thread, error)."""

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
