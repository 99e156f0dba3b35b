"""The result of a call, valid or not, does not affect other calls."""

import jax
import numpy as np

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import THREE, X, assert_readable, ordered_or_not


def test_result_may_be_a_view_of_the_argument(our_pure, run):
    seen = []

    def echo(x):
        seen.append(x)
        return x[::-1]

    f = our_pure(echo, THREE)
    np.testing.assert_array_equal(run(jax.jit(lambda x: f(f(x)) + x), X), 2 * X)
    assert len(seen) == 2


def test_host_function_may_overwrite_an_array_it_returned(our_pure, run):
    """JAX gets a copy, so the host function may reuse its buffer."""
    buffer = np.zeros(3, np.float32)

    def fill(x):
        buffer[:] = x
        return buffer

    f = our_pure(fill, THREE)
    results = [run(f, X + number) for number in range(3)]
    buffer[:] = -1
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, X + number)


def test_program_still_works_after_a_wrong_result(our_pure, run, failure):
    """The error ends only the run in which it happens."""
    results, seen = [X, np.ones(4, np.float32), X * 2], []

    def oracle(x):
        seen.append(x)
        return results[len(seen) - 1]

    f = jax.jit(our_pure(oracle, THREE))
    np.testing.assert_array_equal(run(f, X), X)
    assert "(4,)" in assert_readable(failure(f, X))
    np.testing.assert_array_equal(run(f, X), X * 2)
    assert len(seen) == 3


@ordered_or_not
def test_program_with_io_still_works_after_a_wrong_result(our_io, run, failure, ordered):
    results, seen = [np.ones(4, np.float32), np.ones(3)], []

    def oracle(x):
        seen.append(x)
        return results[len(seen) - 1]

    f = jax.jit(our_io(oracle, THREE, ordered=ordered))
    assert "(4,)" in assert_readable(failure(f, X))
    np.testing.assert_array_equal(run(f, X), np.ones(3))
    assert len(seen) == 2


def test_wrong_result_is_recorded_as_the_error_of_its_call(returning, failure):
    f, _ = returning(np.ones(4, np.float32), THREE)
    with jaxcb.record() as r:
        failure(jax.jit(f), X)
    (call,) = r.recording
    assert "(4,)" in call.error
