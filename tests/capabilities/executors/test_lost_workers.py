"""If a worker is killed, no element is lost or duplicated in the result, and nothing hangs."""

import concurrent.futures
import functools
import logging
import multiprocessing
import os
import re
import subprocess
import sys

import dask
import distributed
import ipyparallel
import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

pytestmark = pytest.mark.slow

X = np.arange(20, dtype=np.float32)


@pytest.fixture(scope="module")
def client():
    """Yield a client of three dask worker processes; dask itself retries nothing."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        cluster = distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )  # fmt: skip
    with cluster, distributed.Client(cluster) as client:
        yield client


def killing(count, times, victim=7):
    """Return a host function that kills its worker in batch element `victim`, `times` times."""

    def host(x):
        import os
        import signal

        if x == victim and count(f"batch element {int(x)}") <= times:
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * x

    return host


def test_lost_worker_is_an_error_of_its_program_and_the_next_one_works(elements, calls, failure):
    f = elements(killing(calls.counter(), 1), executor="processes:2", chunksize=1)
    assert type(failure(f, X)[0]) is jaxcb.WorkerLostError
    assert calls.counted() == {"batch element 7": 1}
    np.testing.assert_array_equal(f(X), 2 * X)


@pytest.mark.long
def test_lost_scheduler_is_an_error_within_the_timeout(elements, failure, tmp_path):
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    client = distributed.Client(cluster, set_as_default=False)
    began = str(tmp_path / "began")
    os.mkfifo(began)
    begin = functools.partial(open, began, "w")  # not seen in the source

    def host(x):
        import threading

        with begin():  # blocks until close_it() opens it
            pass
        threading.Event().wait(60)
        return x

    def close_it():
        with open(began):
            cluster.close(timeout=5)

    with concurrent.futures.ThreadPoolExecutor(1) as other:
        closing = other.submit(close_it)
        error, words = failure(elements(host, executor=client, timeout=50, chunksize=1), X[:4])
        closing.result()
    assert (
        isinstance(error, jaxcb.ExecutorError) and "lost the connection to the scheduler" in words
    )
    client.close(timeout=1)
    with pytest.raises(ValueError, match="is shut down"):
        elements(host, executor=client)(X)


@pytest.mark.parametrize("chunksize", [1, 4])
def test_error_names_the_chunk_and_the_recording_has_it(elements, calls, failure, chunksize):
    f = elements(killing(calls.counter(), 1), executor="processes:2", chunksize=chunksize)
    with jaxcb.record() as r:
        error, words = failure(f, X)
    named = "batch element 7." if chunksize == 1 else "batch elements 4 to 7."
    died = f"a worker of executor='processes:2' died while it ran {named}"
    assert type(error) is jaxcb.WorkerLostError and str(error) == died
    assert ("in batch element 7," in words) is (chunksize == 1)
    (failed,) = [call for call in r.recording if call.error]
    assert failed.element == (7 if chunksize == 1 else -1)
    assert failed.error == f"WorkerLostError: {died}"
    np.testing.assert_array_equal(f(X), 2 * X)


def test_program_whose_worker_lives_does_not_notice_that_another_one_dies(
    elements, calls, tmp_path
):
    """The other program runs while the worker dies, and its worker makes each call once."""
    count, dead = calls.counter(), str(tmp_path / "dead")
    os.mkfifo(dead)
    await_death = functools.partial(open, dead)  # not seen in the source

    def host(x):
        with await_death():
            return 3 * x

    with concurrent.futures.ThreadPoolExecutor(1) as other:
        waits = other.submit(elements(host, executor="processes:2"), X[:1])
        dies = elements(killing(count, 1), executor="processes:2", chunksize=1)
        with pytest.raises(Exception, match="died while it ran batch element 7"):
            jax.block_until_ready(dies(X))
        with open(dead, "w"):
            pass
        assert waits.result().tolist() == [0]


def test_broken_pool_of_the_user_is_reported_with_the_elements_that_it_had(
    elements, calls, failure
):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        f = elements(killing(calls.counter(), 99), executor=pool, chunksize=1)
        error, words = failure(f, X)
        had = re.search(r"one of the workers of .* died, which had batch elements? ([^.]*)", words)
        numbers = [int(number) for number in re.findall(r"\d+", had[1])]
        assert 7 in (range(numbers[0], numbers[1] + 1) if " to " in had[1] else numbers)
        assert words.count("The executor is broken: replace it with a new one.") == 1
        assert type(error) is jaxcb.WorkerLostError
    assert calls.counted() == {"batch element 7": 1}


class Breaking(concurrent.futures.Executor):
    """Fail the first work it gets when it gets the second, like a pool that breaks."""

    def __init__(self, refuses):
        self.futures, self._broken, self._max_workers = [], False, 2
        self.refuses = refuses

    def submit(self, *work):
        self.futures.append(concurrent.futures.Future())
        if len(self.futures) == 2:
            self._broken = concurrent.futures.BrokenExecutor("a worker died")
            self.futures[0].set_exception(self._broken)
            if self.refuses:
                raise self._broken
        return self.futures[-1]


@pytest.mark.parametrize("refuses", [False, True])
def test_pool_that_breaks_while_it_is_given_work_is_reported_with_the_elements_that_it_had(
    elements, failure, refuses
):
    """Nothing is cancelled: on Python 3.11 other callers of the pool would wait forever."""
    pool = Breaking(refuses)
    error, words = failure(elements(lambda x: x, executor=pool, chunksize=1), X)
    assert type(error) is jaxcb.WorkerLostError and not pool.futures[-1].cancelled()
    had = r"batch element 0\." if refuses else r"batch elements 0 to \d\."
    assert re.search(f"died, which had {had} The executor is broken", words)


def test_dask_workers_run_elements_and_a_lost_one_is_reported(elements, calls, failure, client):
    f = elements(killing(calls.counter(), 1), executor=client, chunksize=4)
    np.testing.assert_array_equal(f(X[:4]), 2 * X[:4])
    error, _ = failure(f, X)
    assert type(error) is jaxcb.WorkerLostError
    assert "died while it ran batch elements 4 to 7." in str(error)
    assert calls.counted() == {"batch element 7": 1}


def test_default_client_of_dask_makes_each_of_equal_calls(calls, client):
    count = calls.counter()
    f = jax.jit(jax.vmap(jaxcb.io(lambda x: (count("made"), x)[1], result="x", executor="dask")))
    assert f(np.zeros(6)).tolist() == [0] * 6
    assert calls.counted() == {"made": 6}


def test_ipyparallel_engines_run_elements_and_a_lost_engine_is_reported(elements, calls, failure):
    with ipyparallel.Cluster(n=2, log_level=logging.CRITICAL) as engines:
        f = elements(killing(calls.counter(), 99), executor=engines, chunksize=1)
        np.testing.assert_array_equal(f(X[:7]), 2 * X[:7])
        error, words = failure(f, X)
        assert type(error) is jaxcb.WorkerLostError and "in batch element 7," in words
    assert calls.counted() == {"batch element 7": 1}


MPI = """
import jax, numpy as np, jupyter_jaxcb as jaxcb
from mpi4py.futures import MPIPoolExecutor

with MPIPoolExecutor(2, main=False) as executor:
    f = jax.jit(jax.vmap(jaxcb.pure(lambda x: x**2, result="x", executor=executor)))
    with jaxcb.record() as r:
        assert f(np.arange(12.0)).tolist() == [n**2 for n in range(12)]
    print(sorted(call.element for call in r.recording), len(r.recording.workers))
    fails = jax.vmap(jaxcb.pure(lambda x: 1 // int(x - 7), result="x", executor=executor))
    try:
        jax.block_until_ready(fails(np.arange(12)))
    except Exception as error:
        print(type(jaxcb.host_error(error) or error).__name__)
"""


def test_mpi_pool_of_the_user_runs_elements(tmp_path):
    """The package mpich installs mpiexec beside Python."""
    folder = os.path.dirname(sys.executable)
    environment = {**os.environ, "PATH": os.pathsep.join([folder, os.environ["PATH"]])}
    done = subprocess.run(
        [sys.executable, "-c", MPI], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines() == [
        f"{[*range(12)]} 2",
        "ZeroDivisionError",
    ], done.stderr
