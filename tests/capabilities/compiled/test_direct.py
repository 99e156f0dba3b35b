"""Eager calls of a compiled function share what depends on ranks and dtypes only."""

import ctypes
import threading

import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.compiled import _direct
from jupyter_jaxcb.capabilities.compiled._function import compiled_function
from tests._threads import in_threads

NUMBER = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


@pytest.fixture
def computed(monkeypatch):
    """Return the interfaces that are computed."""
    own, made = _direct.interface_of, []

    def interface_of(*args, **options):
        made.append(own(*args, **options))
        return made[-1]

    monkeypatch.setattr(_direct, "interface_of", interface_of)
    return made


def test_what_a_call_needs_is_computed_once_for_ranks_and_dtypes(computed):
    @jaxcb.pure(result="(x, y)", compile="numba")
    def swapped(x, y):
        return x + y[0], y - x[0, 0]

    for rows, size in [(1, 3), (2, 5), (4, 1)]:
        x = jnp.arange(3.0 * rows).reshape(rows, 3) + 1
        y = jnp.arange(float(size)) + 10
        one, two = swapped(x, y)
        np.testing.assert_array_equal(one, x + 10)
        np.testing.assert_array_equal(two, y - 1)
    assert len(computed) == 1
    swapped(x.astype(jnp.int32), y.astype(jnp.int32))
    assert len(computed) == 2


def test_call_inside_a_call_has_arrays_of_its_own():
    inner = []
    again = NUMBER(lambda x: inner.append(tripled(jnp.full(2, x - 1.0))) or x if x > 1 else x)

    @jaxcb.io(result="x", compile="numba")
    def tripled(x):
        again(x[0])
        return 3 * x

    np.testing.assert_array_equal(tripled(jnp.full(4, 3.0)), np.full(4, 9.0))
    assert [array.tolist() for array in inner] == [[3.0, 3.0], [6.0, 6.0]]


def test_calls_at_once_have_arrays_and_exceptions_of_their_own():
    both = threading.Barrier(4, timeout=60)
    meet = NUMBER(lambda x: both.wait() + x)

    @jaxcb.io(result="x", compile="numba")
    def met(x):
        meet(0.0)
        if x[0] == 2:
            raise KeyError("two")
        if x[0] == 3:
            raise ValueError("three")
        return 2 * x

    def outcome(n):
        try:
            return met(jnp.full(n + 1, float(n))).tolist()
        except Exception as error:
            return repr(jaxcb.host_error(error))

    for _ in range(2):  # the second time in the same frames
        found = in_threads(outcome, range(4))
        assert found == [[0.0], [2.0, 2.0], "KeyError('two')", "ValueError('three')"]


def test_frame_is_lent_to_one_call_at_a_time():
    @jaxcb.pure(result="x", compile="numba")
    def same(x):
        return x

    same(jnp.ones(3))
    (direct,) = compiled_function(same.__wrapped__).direct.values()
    for _ in range(2):
        with direct.frame() as one, direct.frame() as other:
            assert one is not other
    with direct.frame() as again:
        assert again in (one, other)


def test_call_after_one_that_failed_is_right():
    @jaxcb.pure(result="x", compile="numba")
    def checked(x):
        if x[0] < 0:
            raise ValueError("negative")
        return x * x

    for _ in range(2):
        with pytest.raises(Exception, match="negative"):
            checked(jnp.full(3, -1.0))
        np.testing.assert_array_equal(checked(jnp.arange(4.0)), [0, 1, 4, 9])
