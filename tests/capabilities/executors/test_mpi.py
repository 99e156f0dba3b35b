"""MPI workers run batch elements, started by the script itself or by mpiexec."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.executors import _mpi

HERE = pathlib.Path(__file__)
BIN = os.path.dirname(sys.executable)  # the mpich package installs mpiexec here
BY_MPIEXEC = [f"{BIN}/mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures"]


def run(*command):
    """Run a script; return its output and exit status."""
    environment = {**os.environ, "PATH": os.pathsep.join([BIN, os.environ["PATH"]])}
    return subprocess.run(
        command,
        env=environment,
        cwd=HERE.parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        start_new_session=True,  # a job that fails ends every process in its group
    )


@pytest.fixture(
    scope="module",
    params=[([sys.executable], "mpi:2"), (BY_MPIEXEC, "mpi")],
    ids=["spawned", "mpiexec"],
)
def reported(request, tmp_path_factory):
    command, executor = request.param
    folder = tmp_path_factory.mktemp("calls")
    done = run(*command, str(HERE.with_name("mpi_elements.py")), executor, str(folder))
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first == "script"  # printed once: no worker ran the script again
    return json.loads(last)


def test_results_equal_those_of_the_loop_and_each_call_is_made_once(reported):
    assert reported["equal"] == [True, True]
    assert reported["made"] == {"1": 24}


def test_recording_has_each_element_and_its_worker(reported):
    assert reported["elements"] == list(range(24))
    assert reported["pids"] == 2 and reported["ours"] == [False]


def test_error_and_timeout_name_their_element(reported):
    raised, late = reported["errors"]
    assert raised[0] == "UserWarning" and "in batch element 7," in raised[-1]
    assert "raised in a worker (pid " in raised[1]
    assert late[0] == "TimeoutError" and "in batch element 11," in late[-1]


def test_interrupt_ends_the_wait_and_leaves_the_workers_running(reported):
    assert reported["interrupted"] and reported["afterwards"] == [0, 1, 2]


def test_worker_that_exits_ends_the_job():
    """MPI aborts a job as soon as one of its processes exits."""
    code = """
import os
import jax, numpy as np
import jupyter_jaxcb as jaxcb
f = jaxcb.pure(lambda x: x, result=lambda x: x, executor="mpi:2")
print(jax.vmap(f)(np.ones(1)), flush=True)
f = jaxcb.pure(lambda x: os._exit(3) if x == 2 else x, result=lambda x: x, executor="mpi:2")
print(jax.vmap(f)(np.arange(4.0)))
"""
    done = run(sys.executable, "-c", code)
    assert done.returncode != 0 and done.stdout == "[1.]\n"


def test_missing_launcher_is_reported_before_mpi_aborts_python(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in list(os.environ):
        if name.startswith(_mpi._OF_A_JOB):
            monkeypatch.delenv(name)
    with pytest.raises(jaxcb.ExecutorError, match=r"mpiexec, which was not found.*'processes'"):
        _mpi.named_mpi(NeverThere, "mpi", "2")


class NeverThere(concurrent.futures.Executor):
    """A pool whose workers never start."""

    def __init__(self, count, **options):
        self.asked = threading.Event()

    def bootup(self):
        self.asked.wait()


def test_workers_that_never_start_are_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr(_mpi, "_START_SECONDS", 0.01)
    monkeypatch.setenv("PMI_RANK", "0")
    pool = NeverThere(2)
    with pytest.raises(jaxcb.ExecutorError, match=r"has no workers: MPI did not.*'processes'"):
        _mpi.mpi_engine(pool, "mpi")
    pool.asked.set()


def test_workers_that_failed_to_start_are_reported_immediately():
    """mpi4py itself waits forever if the thread that starts the workers fails."""
    code = """
import os, sys
from mpi4py import MPI, futures
futures._core.client_spawn = lambda *args: 1 / 0
import numpy as np, jupyter_jaxcb as jaxcb
f = jaxcb.pure(lambda x: x, result=lambda x: x, executor="mpi:2")
try:
    f(np.float32(1))
except jaxcb.ExecutorError as error:
    print(error)
"""
    done = run(sys.executable, "-c", code)
    assert "has no workers: MPI did not start them" in done.stdout, done.stderr
    assert "ZeroDivisionError" in done.stderr
