"""Errors, timeouts and results that cannot be sent raise the error of the first failed element."""

import concurrent.futures
import contextlib
import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.executors import _stuck

BOTH = pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
X = np.arange(12, dtype=np.float32)


@BOTH
@pytest.mark.parametrize("chunksize", [None, 1, 5])
def test_error_of_the_first_failing_element_is_raised_with_its_number(
    elements, failure, executor, chunksize
):
    def host(x):
        if x in (5, 3, 11):
            raise ValueError(f"no {int(x)}")
        return x

    error, words = failure(elements(host, executor=executor, chunksize=chunksize), X)
    assert type(error) is ValueError and error.args == ("no 3",)
    assert "in call 4 since registration, in batch element 3, called with float32[]" in words


@BOTH
def test_wrong_result_of_an_element_is_reported_as_its_error(elements, failure, executor):
    def host(x):
        return np.zeros(3) if x == 4 else x

    error, words = failure(elements(host, executor=executor), X)
    assert "in batch element 4" in words and "returned shape (3,)" in str(error)


@pytest.mark.parametrize("executor", [None, "threads:2", "processes:2"])
@pytest.mark.parametrize("more", [{}, {"timeout": 60}, {"record": True}], ids=str)
def test_stop_iteration_in_an_element_does_not_silently_end_the_loop(
    elements, failure, executor, more
):
    def host(x):
        return next(n for n in (x,) if n != 5)

    record = jaxcb.record() if more.get("record") else contextlib.nullcontext()
    options = {"timeout": more.get("timeout")} if executor else {}
    with record:
        error, words = failure(elements(host, executor=executor, **options), X)
    assert type(error) is RuntimeError
    assert "the host function raised StopIteration" in str(error) and "in batch element 5," in words


@BOTH
def test_wrong_result_is_not_retried(elements, calls, failure, executor):
    count = calls.counter()

    def host(x):
        count(int(x))
        return np.zeros(3)

    error, _words = failure(elements(host, executor=executor, retries=3), X)
    assert "returned shape (3,)" in str(error) and calls.counted()["0"] == 1


def test_elements_after_the_failing_one_are_not_started(elements, failure):
    begun = []

    def host(x):
        begun.append(int(x))
        if x == 2:
            raise ValueError
        return x

    failure(elements(host, executor="threads:1", chunksize=1), np.arange(1_000, dtype=np.float32))
    assert {0, 1, 2} <= set(begun) and len(begun) < 20


@pytest.mark.parametrize("timeout", [None, 60])
def test_chunk_in_a_thread_ends_with_the_element_that_ran_when_another_failed(
    elements, failure, timeout
):
    begun, waits, go, both = [], threading.Event(), threading.Event(), threading.Barrier(2)

    def host(x):
        begun.append(int(x))
        if x == 10:
            waits.set()
            assert go.wait(60)
        if x == 2:
            assert waits.wait(60)
            raise ValueError
        return x

    failing = elements(host, executor="threads:2", chunksize=10, timeout=timeout)
    failure(failing, np.arange(40, dtype=np.float32))
    go.set()
    meeting = elements(lambda x: (both.wait(60), x)[1], executor="threads:2", chunksize=1)
    jax.block_until_ready(meeting(X[:2]))  # both workers are free again
    assert 10 in begun and not {*begun} & {*range(11, 20)}


def test_error_of_another_process_has_its_traceback(elements, failure):
    def inner(x):
        raise ZeroDivisionError("by nothing")

    def host(x):
        return inner(x)

    error, words = failure(elements(host, executor="processes:2"), X)
    assert type(error) is ZeroDivisionError
    assert "raised in a worker (pid " in words and "in inner" in words
    assert "jupyter_jaxcb_worker" not in words


@pytest.mark.parametrize("kind", ["cause", "context", "group"])
def test_error_of_another_process_has_the_tracebacks_of_its_causes(elements, failure, kind):
    def inner(x):
        raise ZeroDivisionError("by nothing")

    def host(x):
        try:
            inner(x)
        except ZeroDivisionError as error:
            if kind == "cause":
                raise ValueError("no luck") from error
            if kind == "group":
                raise ExceptionGroup("no luck", [error]) from None
            raise ValueError("no luck")  # noqa: B904

    error, words = failure(elements(host, executor="processes:2"), X)
    assert error.args[0] == "no luck" and "in inner" in words
    assert "ZeroDivisionError: by nothing" in words and "jupyter_jaxcb_worker" not in words


@pytest.mark.parametrize("kind", ["needs two", "holds a lock"])
def test_error_that_cannot_be_pickled_is_reported_by_its_text(elements, failure, kind):
    def host(x):
        class Odd(Exception):
            def __init__(self, one, two):
                super().__init__("odd words")
                if kind == "holds a lock":
                    import threading

                    self.lock = threading.Lock()

        raise Odd(1, 2)

    error, words = failure(elements(host, executor="processes:2"), X)
    assert "odd words" in str(error) and "in batch element 0" in words


def test_result_that_cannot_be_sent_is_an_error_of_its_element(elements, failure):
    def host(x):
        return (n for n in ()) if x == 7 else x

    error, words = failure(elements(host, executor="processes:2"), X)
    assert (
        "its result (generator) cannot be sent back" in str(error) and "in batch element 7" in words
    )


@BOTH
def test_failed_element_is_retried_as_often_as_allowed(elements, calls, failure, executor):
    count = calls.counter()

    def host(x):
        if count(int(x)) <= int(x) % 3:  # elements fail zero, one or two times
            raise OSError("not now")
        return 2 * x

    returned_value = elements(host, executor=executor, retries=2)(X)
    np.testing.assert_array_equal(returned_value, 2 * X)
    assert calls.counted() == {str(n): 1 + n % 3 for n in range(12)}


@BOTH
def test_element_out_of_retries_is_an_error(elements, calls, failure, executor):
    count = calls.counter()

    def host(x):
        if x == 2:
            count("two")
            raise OSError("never")
        return x

    error, words = failure(elements(host, executor=executor, retries=3), X)
    assert (
        type(error) is OSError
        and "called 4 times (retries=3)" in words
        and "batch element 2" in words
    )
    assert calls.counted()["two"] == 4


@BOTH
def test_error_of_a_timeout_names_the_element(elements, failure, executor):
    def host(x):
        if x == 3:
            import threading

            threading.Event().wait(30)
        return x

    error, words = failure(elements(host, executor=executor, timeout=0.2), X)
    assert (
        type(error) is TimeoutError
        and "more than 0.2 s" in str(error)
        and "batch element 3" in words
    )


def test_element_that_timed_out_is_retried(elements, calls):
    count = calls.counter()

    def host(x):
        if x == 3 and count("three") == 1:
            import threading

            threading.Event().wait(30)
        return x

    np.testing.assert_array_equal(
        elements(host, executor="processes:2", timeout=0.5, retries=1)(X), X
    )
    assert calls.counted() == {"three": 2}


def test_retries_and_timeout_apply_without_vmap():
    attempts = []

    def host(x):
        attempts.append(x)
        if len(attempts) < 3:
            raise OSError
        return x

    f = jaxcb.pure(host, result="x", executor="threads", retries=2, timeout=10)
    assert jax.jit(f)(np.float32(4)) == 4 and len(attempts) == 3


def test_interrupt_raised_by_a_host_function_is_not_retried(elements):
    attempts = []

    def host(x):
        attempts.append(x)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        elements(host, executor="threads:1", retries=5, chunksize=1)(X).block_until_ready()
    assert len(attempts) <= 2  # one more may have been in flight


@pytest.mark.filterwarnings("ignore:.*another callback")
@pytest.mark.parametrize("pool", ["threads:1", "threads:2", "mine"])
@pytest.mark.parametrize("timeouts", [(None, None), (20, None), (20, 20)])
def test_host_function_may_use_the_same_executor(pool, timeouts):
    """All threads that the inner call needs are waiting for it."""
    mine = concurrent.futures.ThreadPoolExecutor(1)
    executor = mine if pool == "mine" else pool
    inner = jaxcb.pure(lambda x: x + 1, result=lambda x: x, executor=executor, timeout=timeouts[1])

    def host(x):
        return np.asarray(jax.vmap(inner)(np.full(3, x, np.float32))).sum()

    outer = jaxcb.pure(host, result=lambda x: x, executor=executor, timeout=timeouts[0])
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(jax.vmap(outer)(x), 3 * (x + 1))
    mine.shutdown()


def test_several_crossings_share_one_executor(elements):
    together = threading.Barrier(2, timeout=30)

    def host(x):
        together.wait()  # deadlocks unless two elements run at the same time
        return x

    f = elements(host, executor="threads:4", chunksize=1)
    x = np.arange(8, dtype=np.float32)
    with concurrent.futures.ThreadPoolExecutor(4) as callers:
        for returned_value in callers.map(f, [x + n for n in range(4)]):
            assert returned_value.shape == (8,)


def test_worker_that_holds_the_gil_past_its_timeout_is_killed_and_reported(
    elements, failure, monkeypatch
):
    monkeypatch.setattr(_stuck, "GRACE_SECONDS", 0.2)

    def host(x):
        if x == 3:
            import ctypes

            ctypes.PyDLL(None).sleep(60)
        return x

    error, words = failure(
        elements(host, executor="processes:2", timeout=0.3, chunksize=1), np.arange(6, dtype="f")
    )
    assert type(error) is TimeoutError and "batch element 3" in words and "was killed" in str(error)
