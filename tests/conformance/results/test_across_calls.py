"""The result of a call, valid or not, does not affect other calls."""

import jax
import numpy as np

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import THREE, X, assert_readable


def test_result_may_be_a_view_of_the_argument(our_pure, run):
    seen = []

    def echo(x):
        seen.append(x)
        return x[::-1]

    f = our_pure(echo, THREE)
    np.testing.assert_array_equal(run(jax.jit(lambda x: f(f(x)) + x), X), 2 * X)
    assert len(seen) == 2


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


def test_wrong_result_is_recorded_as_the_error_of_its_call(returning, failure):
    f, _ = returning(np.ones(4, np.float32), THREE)
    with jaxcb.record() as r:
        failure(jax.jit(f), X)
    (call,) = r.recording
    assert "(4,)" in call.error
