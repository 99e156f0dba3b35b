"""Errors, timeouts and results that cannot be sent raise the error of the first failed element."""

import concurrent.futures
import itertools
import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

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


@pytest.mark.parametrize("executor", [None, "threads:2", "processes:2"])
def test_stop_iteration_in_an_element_does_not_silently_end_the_loop(elements, failure, executor):
    def host(x):
        return next(n for n in (x,) if n != 5)

    error, words = failure(elements(host, executor=executor), X)
    assert isinstance(error, RuntimeError if executor is None else StopIteration)
    assert "in batch element 5," in words


@BOTH
def test_error_of_a_timeout_names_the_elements_of_its_chunk(elements, failure, executor):
    def host(x):
        if x == 3:
            import threading

            threading.Event().wait(30)
        return x

    error, words = failure(elements(host, executor=executor, timeout=0.2, chunksize=4), X)
    assert str(error) == "batch elements 0 to 3 took more than 0.2 s (timeout=)"
    assert "in batch element" not in words
    np.testing.assert_array_equal(elements(lambda x: 2 * x, executor=executor)(X), 2 * X)


def test_worker_that_holds_the_gil_past_its_timeout_is_replaced(elements, failure):
    def host(x):
        if x == 3:
            import ctypes

            ctypes.PyDLL(None).sleep(60)
        return x

    def process(x):
        import os

        return np.float32(os.getpid())

    before = elements(process, executor="processes:1")(X[:1])
    error, words = failure(elements(host, executor="processes:1", timeout=0.3), X)
    assert type(error) is TimeoutError and "in batch element 3," in words
    assert elements(process, executor="processes:1", timeout=60)(X[:1]) != before


def test_timeout_does_not_count_the_wait_for_a_worker_that_another_program_uses(elements):
    inside, go = threading.Event(), threading.Event()
    first = elements(lambda x: (inside.set(), go.wait(60), x)[2], executor="threads:1")
    other = elements(lambda x: (threading.Event().wait(0.2), x)[1], executor="threads:1", timeout=1)
    with concurrent.futures.ThreadPoolExecutor(2) as callers:
        busy = callers.submit(first, X[:1])
        assert inside.wait(60)
        waits = callers.submit(lambda: other(X[:1]).block_until_ready())
        assert concurrent.futures.wait([waits], 1.2).not_done
        go.set()
        assert waits.result().tolist() == busy.result().tolist() == [0]


def spread(host, executor, **options):
    return jaxcb.pure(host, result=lambda x: x, executor=executor, **options)


@pytest.mark.filterwarnings("ignore:.*another callback")
@pytest.mark.parametrize("pool", ["threads:1", "threads:2", "mine"])
@pytest.mark.parametrize("timeouts", [(None, None), (20, None), (20, 20)])
def test_host_function_may_use_the_same_executor(pool, timeouts):
    """All threads that the inner call needs are waiting for it."""
    mine = concurrent.futures.ThreadPoolExecutor(1)
    executor = mine if pool == "mine" else pool
    inner = spread(lambda x: x + 1, executor, timeout=timeouts[1])

    def host(x):
        return np.asarray(jax.vmap(inner)(np.full(3, x, np.float32))).sum()

    x = np.arange(4, dtype=np.float32)
    outer = spread(host, executor, timeout=timeouts[0])
    np.testing.assert_array_equal(jax.vmap(outer)(x), 3 * (x + 1))
    mine.shutdown()


@pytest.mark.filterwarnings("ignore:.*another callback")
def test_executors_may_wait_for_each_other():
    one, two = (concurrent.futures.ThreadPoolExecutor(1) for _ in range(2))
    f = spread(lambda x: x + 1, one)
    g = spread(lambda x: np.asarray(f(x)) + 1, two)
    h = spread(lambda x: np.asarray(g(x)) + 1, one)
    with one, two:
        assert jax.vmap(h)(np.arange(3, dtype=np.float32)).tolist() == [3, 4, 5]


def test_calls_of_one_worker_follow_the_order_of_the_batch(elements):
    made = []
    elements(lambda x: made.append(int(x)) or x, executor="threads:1")(X).block_until_ready()
    assert made == list(range(12))


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [2, 2, 2, 2, 2, 2]),  # four for each of two workers, rounded up
        ({"chunksize": 5}, [5, 5, 2]),
        ({"timeout": 60}, [1] * 12),
    ],
    ids=str,
)
def test_chunks_have_the_size_that_is_documented(elements, options, sizes):
    sent = []

    class Counting(concurrent.futures.ThreadPoolExecutor):
        def submit(self, work, /, *args):
            sent.append(args[1].count)
            return super().submit(work, *args)

    with Counting(2) as pool:
        elements(lambda x: x, executor=pool, **options)(X).block_until_ready()
    assert sent == sizes


def test_no_more_chunks_are_submitted_than_there_are_workers(elements):
    submitted, returned = itertools.count(1), itertools.count(1)
    ahead = []

    class Counting(concurrent.futures.ThreadPoolExecutor):
        def submit(self, work, /, *args):
            future = super().submit(work, *args)
            future.add_done_callback(lambda future: next(returned))
            ahead.append(next(submitted) - int(repr(returned)[6:-1]) + 1)
            return future

    with Counting(3) as pool:
        elements(lambda x: x, executor=pool, chunksize=1)(X).block_until_ready()
    assert len(ahead) == 12 and max(ahead) <= 3
