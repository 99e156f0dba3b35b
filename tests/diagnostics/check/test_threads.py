"""`check` calls functions with ``executor="threads"`` in several threads at once."""

import concurrent.futures
import functools
import itertools
import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

from .test_check import only

pytestmark = pytest.mark.kept
X = np.float32([1.0, 2.0, 4.0])
KIND = "same in threads"


def pure(function, executor="threads:3"):
    return jaxcb.pure(result="x", executor=executor)(function)


def keeps_its_argument(wait):
    kept = [None]

    def square(x):
        kept[0] = x
        wait()
        return kept[0] * kept[0]

    return square


def in_one_line():
    kept = [None]
    return lambda x: (kept.__setitem__(0, x), kept[0] * kept[0])[1]


class Solver:
    def set(self, x):
        self.x = x

    def run(self):
        self.y = self.x * self.x

    def __call__(self, x):
        self.set(x)
        self.run()
        return self.y


def fills_one_array():
    buffer = np.empty(3, np.float32)

    def square(x):
        np.copyto(buffer, x)
        return np.multiply(buffer, buffer)

    return square


NOT_REENTRANT = {
    "sleeps": lambda: keeps_its_argument(lambda: time.sleep(0.001)),
    "does not wait": lambda: keeps_its_argument(lambda: None),
    "in one line": in_one_line,
    "an object": lambda: Solver().__call__,
    "one array": fills_one_array,
}


@pytest.mark.parametrize("executor", ["threads:2", "threads:3", "pool"])
@pytest.mark.parametrize("make", NOT_REENTRANT.values(), ids=NOT_REENTRANT)
def test_function_that_mixes_the_values_of_calls_is_found(make, executor):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        finding = only(pure(make(), pool if executor == "pool" else executor), X)
    assert finding.kind == KIND
    assert "inputs at once in threads, it returns " in finding.what
    assert " for args[0] = [" in finding.what or " for the given arguments" in finding.what
    assert "threading.Lock()" in finding.advice and "executor='processes'" in finding.advice


def test_inputs_whose_results_differ_are_named():
    """All threads square the argument that the last one has kept."""
    finding = only(pure(keeps_its_argument(lambda: None)), np.float32(4))
    values = {"16.0": "the given arguments", "9.0": "args[0] = 3.", "4.0": "args[0] = 2."}
    (right,) = [alone for alone, given in values.items() if f"for {given}" not in finding.what]
    for alone in values.keys() - {right}:
        assert f"returns {right} instead of {alone} for {values[alone]}" in finding.what


def test_function_that_refuses_a_second_call_is_found():
    running = threading.Lock()

    def guarded(x):
        if not running.acquire(blocking=False):
            raise RuntimeError("already running")
        y = 2 * x
        running.release()
        return y

    finding = only(pure(guarded), X)
    assert finding.kind == KIND and "it fails (RuntimeError: already running)" in finding.what


def with_a_lock():
    kept, lock = [None], threading.Lock()

    def square(x):
        with lock:
            kept[0] = x
            time.sleep(0.001)
            return kept[0] * kept[0]

    return square


def of_its_thread():
    own = threading.local()

    def square(x):
        vars(own)["x"] = x
        return own.x * own.x

    return square


@pytest.mark.parametrize("make", [with_a_lock, of_its_thread, lambda: np.square])
def test_function_that_threads_may_share_has_no_finding(make):
    found = jaxcb.check(pure(make()), X)
    assert found.ok and KIND in found.kept


@pytest.mark.parametrize("values", [itertools.count(), iter(np.random.default_rng(0).normal, 0)])
def test_function_that_differs_anyway_is_not_blamed_on_threads(values):
    draw = functools.partial(next, values)  # not seen in the source
    finding = only(pure(lambda x: x + np.float32(draw())), X)
    assert finding.kind == "same inputs twice"


def test_one_worker_makes_no_calls_at_once():
    found = jaxcb.check(pure(keeps_its_argument(lambda: None), "threads:1"), X)
    assert found.ok and found.left_out[KIND] == "its executor has one worker"


def test_io_function_is_still_called_once():
    calls = []

    @jaxcb.io(result="x", executor="threads:3")
    def log(x):
        calls.append(x)
        return x

    found = jaxcb.check(log, X)
    assert len(calls) == 1 and found.left_out[KIND] == "an io function is called once"


@pytest.mark.parametrize("executor", [None, "processes"])
def test_without_threads_no_call_is_made_in_one(executor):
    threads = set()
    found = jaxcb.check(pure(lambda x: threads.add(threading.get_ident()) or x, executor), X)
    assert threads == {threading.get_ident()}
    assert KIND not in found.kept and KIND not in found.left_out


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(), (3,)], ids=["scalar", "vector"])
def test_zeros_are_changed_so_that_calls_are_compared(dtype, shape):
    zeros = np.zeros(shape, jnp.dtype(dtype))
    found = jaxcb.check(pure(lambda x: x), zeros)
    assert found.ok and KIND in found.kept and KIND not in found.left_out
    # Every operation of the function is between the same operations of the other call.
    assert only(pure(keeps_its_argument(lambda: None)), zeros).kind == KIND


def test_python_zero_is_changed_too():
    assert KIND in jaxcb.check(pure(lambda x: x), 0.0).kept


@pytest.mark.parametrize("given", [np.zeros((0, 3), np.float32), np.float32([])])
def test_inputs_without_values_are_not_said_to_be_refused(given):
    found = jaxcb.check(pure(lambda x: x), given)
    assert found.ok
    assert found.left_out[KIND] == "no two different inputs that it accepts were found"
