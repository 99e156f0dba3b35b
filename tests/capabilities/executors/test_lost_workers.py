"""If a worker is killed, no element is lost or duplicated in the result, and nothing hangs."""

import collections
import concurrent.futures
import functools
import logging
import multiprocessing
import os

import dask
import distributed
import ipyparallel
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.executors import _flight

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


@pytest.mark.parametrize("chunksize", [None, 4])
def test_element_whose_worker_was_killed_is_retried(elements, calls, chunksize):
    f = elements(
        killing(calls.counter(), 2), executor="processes:2", retries=2, chunksize=chunksize
    )
    np.testing.assert_array_equal(f(X), 2 * X)
    assert calls.counted() == {"batch element 7": 3}


def test_lost_worker_is_an_error_of_its_program_and_the_next_one_works(elements, calls, failure):
    f = elements(killing(calls.counter(), 1), executor="processes:2", chunksize=1)
    assert type(failure(f, X)[0]) is jaxcb.WorkerLostError
    assert calls.counted() == {"batch element 7": 1}
    np.testing.assert_array_equal(f(X), 2 * X)


def test_error_names_element_and_worker_and_the_next_call_works(elements, calls, failure):
    f = elements(killing(calls.counter(), 1), executor="processes:2", chunksize=4)
    error, words = failure(f, X)
    assert type(error) is jaxcb.WorkerLostError
    assert "died (pid " in words and "in batch element 7," in words and "retries=1" in words
    assert calls.counted() == {"batch element 7": 1}
    np.testing.assert_array_equal(f(X), 2 * X)


def test_killed_dask_worker_is_reported_or_its_element_retried(elements, calls, failure, client):
    count = calls.counter()
    f = elements(killing(count, 1), executor=client, chunksize=4)
    np.testing.assert_array_equal(f(X[:4]), 2 * X[:4])  # its workers wrote on the board
    error, words = failure(f, X)
    assert type(error) is jaxcb.WorkerLostError
    assert "died (pid " in words and "in batch element 7," in words and "retries=1" in words
    assert calls.counted() == {"batch element 7": 1}
    again = elements(killing(count, 2), executor=client, chunksize=4, retries=1)
    np.testing.assert_array_equal(again(X), 2 * X)
    assert calls.counted() == {"batch element 7": 3}


def test_only_the_element_that_kills_its_worker_uses_a_retry(elements, calls):
    """The pool breaks as a whole, but elements of other workers keep their retries."""
    count = calls.counter()

    def host(x):
        import os
        import signal

        if x in (3, 11, 17) and count(int(x)) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    f = elements(host, executor="processes:2", retries=1, chunksize=5)
    np.testing.assert_array_equal(f(X), X)
    # An element runs once more if its result was lost with another element's worker.
    made = calls.counted()
    assert set(made) == {"3", "11", "17"} and min(made.values()) >= 2, made


def test_recording_has_the_lost_call(elements, calls):
    f = elements(killing(calls.counter(), 1), executor="processes:2", retries=1, chunksize=1)
    with jaxcb.record() as r:
        f(X).block_until_ready()
    made = collections.Counter(call.element for call in r.recording)
    assert made[7] == 2 and [call.element for call in r.recording if call.error] == [7]
    assert set(made) == set(range(20))


def test_worker_that_is_still_exiting_is_the_one_that_died(elements, calls, failure, monkeypatch):
    """A pool breaks when its worker's files are closed, before the process has ended."""
    asked = collections.Counter()

    def has_ended(pid):
        asked[pid] += 1
        return asked[pid] > 1 and really_ended(pid)

    really_ended, context = _flight.has_ended, multiprocessing.get_context("spawn")
    monkeypatch.setattr(_flight, "has_ended", has_ended)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        f = elements(killing(calls.counter(), 99), executor=pool, chunksize=1)
        error, words = failure(f, X)
    assert type(error) is jaxcb.WorkerLostError and "in batch element 7," in words


def test_broken_pool_of_the_user_is_reported(elements, calls, failure):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        f = elements(killing(calls.counter(), 99), executor=pool, retries=5, chunksize=1)
        _, words = failure(f, X)
        assert "in batch element 7," in words and "The executor is broken" in words
    assert calls.counted() == {"batch element 7": 1}


class Breaking(concurrent.futures.Executor):
    """Fail the first work it gets, like a pool that breaks, and keep the rest."""

    def __init__(self):
        self.futures, self._broken, self._max_workers = [], False, 2

    def submit(self, *work):
        self.futures.append(concurrent.futures.Future())
        if len(self.futures) == 2:
            self._broken = "a worker died"
            self.futures[0].set_exception(concurrent.futures.BrokenExecutor(self._broken))
        return self.futures[-1]


def test_nothing_is_cancelled_in_a_pool_that_is_breaking(elements, failure):
    """On Python 3.11 other callers of the pool would wait forever."""
    pool = Breaking()
    error, _ = failure(elements(lambda x: x, executor=pool, chunksize=1), X)
    assert type(error) is jaxcb.WorkerLostError
    *_, last = pool.futures
    assert len(pool.futures) > 1 and not last.cancelled()


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


def test_ipyparallel_engines_run_elements_and_a_lost_engine_is_reported(elements, calls, failure):
    with ipyparallel.Cluster(n=2, log_level=logging.CRITICAL) as engines:
        f = elements(killing(calls.counter(), 99), executor=engines, chunksize=1)
        np.testing.assert_array_equal(f(X[:7]), 2 * X[:7])
        error, words = failure(f, X)
        assert type(error) is jaxcb.WorkerLostError and "in batch element 7," in words
    assert calls.counted() == {"batch element 7": 1}
