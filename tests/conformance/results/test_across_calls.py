"""A result, good or bad, belongs to its own call and changes no other."""

import jax
import numpy as np

import jupyter_jaxcb as jaxcb
from tests.conformance._arrays import THREE, X
from tests.conformance._messages import assert_readable
from tests.conformance._parameters import ordered_or_not


def test_result_may_be_the_argument_itself(our_pure, run):
    """Unchanged, or a view of it; 2 calls in one program."""
    seen = []

    def echo(x):
        seen.append(x)
        return x[::-1]

    f = our_pure(echo, THREE)
    np.testing.assert_array_equal(run(jax.jit(lambda x: f(f(x)) + x), X), 2 * X)
    assert len(seen) == 2


def test_result_changed_after_it_was_returned_does_not_change_the_result(our_pure, run):
    """The host may reuse its buffer; 3 calls."""
    buffer = np.zeros(3, np.float32)

    def fill(x):
        buffer[:] = x
        return buffer

    f = our_pure(fill, THREE)
    results = [run(f, X + number) for number in range(3)]
    buffer[:] = -1
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, X + number)


def test_good_calls_after_a_bad_one_are_good(our_pure, run, failure):
    """An error ends one run, not the program; 3 calls."""
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
def test_io_callbacks_keep_the_same_contract(our_io, run, failure, ordered):
    """One bad result, then a good one; 2 calls."""
    results, seen = [np.ones(4, np.float32), np.ones(3)], []

    def oracle(x):
        seen.append(x)
        return results[len(seen) - 1]

    f = jax.jit(our_io(oracle, THREE, ordered=ordered))
    assert "(4,)" in assert_readable(failure(f, X))
    np.testing.assert_array_equal(run(f, X), np.ones(3))
    assert len(seen) == 2


def test_bad_result_is_recorded_as_the_error_of_its_call(returning, failure):
    """1 call, with its error."""
    f, _ = returning(np.ones(4, np.float32), THREE)
    with jaxcb.record() as r:
        failure(jax.jit(f), X)
    (call,) = r.recording
    assert "(4,)" in call.error
