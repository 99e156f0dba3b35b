"""A failing, late or nested batch element: which error is raised, and what is not started."""

import concurrent.futures
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
def test_wrong_result_of_an_element_is_its_error_in_the_program_and_in_the_recording(
    elements, failure, executor
):
    with jaxcb.record() as r:
        f = elements(lambda x: np.zeros(3) if x == 4 else x, executor=executor, chunksize=12)
        error, words = failure(f, X)
    assert "in batch element 4" in words and "returned shape (3,)" in str(error)
    (failed,) = [call for call in r.recording if call.error]
    assert failed.element == 4 and failed.error.startswith("ResultError: ")


def test_elements_after_the_failing_one_are_not_started(elements, failure):
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

    f = elements(host, executor="threads:2", chunksize=10)
    failure(f, np.arange(1_000, dtype=np.float32))
    go.set()
    meeting = elements(lambda x: (both.wait(60), x)[1], executor="threads:2", chunksize=1)
    jax.block_until_ready(meeting(X[:2]))  # both workers are free again
    assert sorted(begun) == [0, 1, 2, 10]


@pytest.mark.parametrize("kind", ["cause", "context", "group"])
def test_error_of_another_process_has_its_traceback_and_those_of_its_causes(
    elements, failure, kind
):
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
    assert error.args[0] == "no luck" and "in inner" in words and "raised in a worker (pid" in words
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
    f = elements(lambda x: (n for n in ()) if x == 7 else x, executor="processes:2")
    error, words = failure(f, X)
    assert "its result (generator) cannot be sent back" in str(error)
    assert "in batch element 7" in words


def test_function_that_a_worker_cannot_load_is_an_error_that_says_so(elements, failure):
    class Unloadable:
        def __reduce__(self):
            return __import__, ("no_such_module",)

    thing = Unloadable()
    error, words = failure(elements(lambda x: (thing, x)[1], executor="processes:2"), X)
    assert type(error) is ModuleNotFoundError and "no_such_module" in words


@BOTH
def test_stop_iteration_in_an_element_does_not_silently_end_the_loop(elements, failure, executor):
    f = elements(lambda x: next(n for n in (x,) if n != 5), executor=executor)
    error, words = failure(f, X)
    assert isinstance(error, StopIteration) and "in batch element 5," in words


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


@BOTH
def test_chunk_that_is_late_is_one_call_with_the_error_and_its_worker_is_replaced(
    elements, failure, executor
):
    def host(x):
        if x == 3:
            import threading

            threading.Event().wait(30)
        return x

    late = "batch elements 0 to 3 took more than 0.2 s (timeout=)"
    with jaxcb.record() as r:
        error, words = failure(elements(host, executor=executor, timeout=0.2, chunksize=4), X)
    assert str(error) == late and "in batch element" not in words
    (failed,) = [call for call in r.recording if call.error]
    assert (failed.element, failed.error) == (-1, f"TimeoutError: {late}")
    with jaxcb.record() as later:
        doubled = elements(np.negative, executor=executor, timeout=60)(X)
    np.testing.assert_array_equal(doubled, -X)
    # The failed program may have had calls on the other worker, which are recorded when they end.
    assert len(later.recording.calls_of("negative")) == 12 and later.recording.running == ()


@pytest.mark.parametrize("executor", ["threads:1", "processes:1"])
def test_late_worker_is_replaced_even_if_it_holds_the_gil_of_its_process(
    elements, failure, executor
):
    def host(x):
        import ctypes
        import threading

        if executor == "processes:1":
            ctypes.PyDLL(None).sleep(60)
        threading.Event().wait(5)
        return x

    def worker(x):
        import threading

        return np.float32(threading.get_native_id())

    before = elements(worker, executor=executor)(X[:1])
    error, words = failure(elements(host, executor=executor, timeout=0.3), X)
    assert type(error) is TimeoutError and "in batch element 0," in words
    assert elements(worker, executor=executor)(X[:1]) != before


def test_timeout_does_not_count_the_wait_for_a_worker_that_another_program_uses(elements):
    inside, go = threading.Event(), threading.Event()
    first = elements(lambda x: (inside.set(), go.wait(60), x)[2], executor="threads:1")
    other = elements(lambda x: x, executor="threads:1", timeout=0.3)
    with concurrent.futures.ThreadPoolExecutor(2) as callers:
        busy = callers.submit(first, X[:1])
        assert inside.wait(60)
        waits = callers.submit(lambda: other(X[:1]).block_until_ready())
        assert concurrent.futures.wait([waits], 1).not_done
        go.set()
        assert waits.result().tolist() == busy.result().tolist() == [0]


def test_several_crossings_share_one_executor(elements):
    together = threading.Barrier(2, timeout=30)
    # It deadlocks unless two elements run at the same time.
    f = elements(lambda x: (together.wait(), x)[1], executor="threads:4", chunksize=1)
    with concurrent.futures.ThreadPoolExecutor(4) as callers:
        for returned in callers.map(f, [X[:8] + n for n in range(4)]):
            assert returned.shape == (8,)


@pytest.mark.filterwarnings("ignore:.*another callback")
@pytest.mark.parametrize("timeout", [None, 20])
@pytest.mark.parametrize("names", ["aa", "aba", "threads:1 threads:1"])
def test_call_in_a_worker_thread_runs_in_that_thread(names, timeout):
    """All threads that the inner call needs may be waiting for it."""
    one, two = (concurrent.futures.ThreadPoolExecutor(1) for _ in range(2))
    pools = names.split() if ":" in names else [{"a": one, "b": two}[name] for name in names]
    threads = []

    def host(x):
        threads.append(threading.current_thread().name)
        return x + 1

    for pool in pools:
        f = jaxcb.pure(host, result="x", executor=pool, timeout=timeout)

        def host(x, f=f):
            return np.asarray(jax.vmap(f)(np.full(3, x))).sum() + 1

    with one, two:
        jax.vmap(f)(X[:2])
    assert len(threads) == 2 * 3 ** (len(pools) - 1) and len(set(threads)) == 1


@pytest.mark.filterwarnings("ignore:.*another callback")
def test_call_in_a_worker_thread_may_use_processes():
    here = jaxcb.pure(lambda x: x + 1, result="x", executor="threads:1")

    def host(x):
        import threading

        return np.float32(threading.current_thread() is threading.main_thread())

    inner = jaxcb.pure(host, result="x", executor="processes:1")
    outer = jaxcb.pure(lambda x: np.asarray(inner(x)), result="x", executor="threads:1")
    assert jax.vmap(outer)(X[:2]).tolist() == [1, 1] and here(X[0]) == 1


class Counting(concurrent.futures.ThreadPoolExecutor):
    """Note the size of each chunk, and how many had not come back when it was submitted."""

    def __init__(self, workers):
        super().__init__(workers)
        self.out, self.sent = [], []

    def submit(self, work, /, *args):
        self.out.append(1)
        self.sent.append((args[1].count, len(self.out)))
        future = super().submit(work, *args)
        future.add_done_callback(lambda future: self.out.pop())
        return future


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [2, 2, 2, 2, 2, 2]),  # four for each of two workers, rounded up
        ({"chunksize": 5}, [5, 5, 2]),
        ({"timeout": 60}, [1] * 12),
    ],
    ids=str,
)
def test_chunks_have_the_documented_size_and_each_worker_gets_one_at_a_time(
    elements, options, sizes
):
    with Counting(2) as pool:
        elements(lambda x: x, executor=pool, **options)(X).block_until_ready()
    assert [size for size, _ in pool.sent] == sizes
    assert max(out for _, out in pool.sent) <= 2
