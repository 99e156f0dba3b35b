"""Threads of an executor call machine code side by side."""

import ctypes
import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.arange(6, dtype=np.float32)
NEEDED = X % 2 == 1


def double(x):
    return 2 * x


@pytest.mark.parametrize("chunksize", [None, 1, 4])
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("flavor", ["pure", "io"])
def test_values_and_calls_are_those_of_machine_code_alone(flavor, jitted, chunksize):
    def scaled(x, y, scale):
        return x * scale + y.sum(), x - y

    f = getattr(jaxcb, flavor)(
        scaled, result="(x, y)", compile="numba", executor="threads:2", chunksize=chunksize
    )
    outer = jax.vmap(jax.vmap(f, in_axes=(0, None, None)), in_axes=(0, 0, None))
    y = np.float32([[1, 2], [3, 4], [5, 6]])
    with jaxcb.record() as r:
        one, other = (jax.jit(outer) if jitted else outer)(X.reshape(3, 2), y, 3.0)
    np.testing.assert_array_equal(one, 3 * X.reshape(3, 2) + y.sum(1)[:, None])
    np.testing.assert_array_equal(other, X.reshape(3, 2)[..., None] - y[:, None])
    assert sorted(call.element for call in r.recording) == list(range(6))


def test_two_calls_run_at_once():
    together = threading.Barrier(2)
    meet = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: together.wait(60) and x)
    f = jaxcb.io(
        lambda x: meet(x) + x, result="x", compile="numba", executor="threads:2", chunksize=1
    )
    jax.block_until_ready(jax.jit(jax.vmap(f))(X[:2]))
    assert not together.broken


@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
def test_mask_leaves_out_calls(method):
    f = jaxcb.pure(double, result="x", compile="numba", executor="threads:2", vmap_method=method)
    program = jax.jit(jax.vmap(lambda m, x: f.where(m, x, otherwise=-1)))
    with jaxcb.record() as r:
        np.testing.assert_array_equal(program(NEEDED, X), np.where(NEEDED, 2 * X, -1))
    elements = [1, 3, 5] if method == "sequential" else [-1]
    assert sorted(call.element for call in r.recording) == elements


@pytest.mark.parametrize("flavor", ["pure", "io"])
def test_failing_element_is_named(flavor, failure):
    def host(x):
        if x == 3:
            raise ValueError("no luck")
        return x

    f = getattr(jaxcb, flavor)(host, result="x", compile="numba", executor="threads:2")
    program = jax.jit(jax.vmap(f))
    error, notes = failure(program, X)
    assert repr(error) == "ValueError('no luck')"
    assert "in batch element 3, called with float32[]" in notes
    np.testing.assert_array_equal(program(X + 10), X + 10)


def test_queue_and_threads_call_machine_code(note):
    seen, got = note

    def host(x):
        seen(x)

    f = jaxcb.io(host, result=None, compile="numba", executor="threads:2", queued=True)
    jax.jit(jax.vmap(lambda m, x: f.where(m, x)))(NEEDED, X)
    jax.effects_barrier()
    assert sorted(got) == [1, 3, 5]


def test_function_that_cannot_be_compiled_is_an_error_of_jit():
    f = jaxcb.pure(lambda x: x + "no", result="x", compile="numba", executor="threads:2")
    with pytest.raises(TypeError, match="numba cannot compile"):
        jax.jit(jax.vmap(f))(X)


def test_new_function_is_compiled_at_the_next_call():
    f = jaxcb.pure(lambda x: x + 1, result="x", compile="numba", executor="threads:2")
    program = jax.jit(jax.vmap(f))
    np.testing.assert_array_equal(program(X), X + 1)
    f.host.rebind(lambda x: x + 10)
    np.testing.assert_array_equal(program(X), X + 10)


def test_recording_has_the_values_of_calls_that_python_made():
    f = jaxcb.pure(double, result="x", compile="numba", executor="threads:2")
    with jaxcb.record() as r:
        jax.jit(jax.vmap(f))(X).block_until_ready()
    assert {v.element: v.results for v in r.recording.sample_values}[1] == ("2",)
    assert "values, NaN and threads are not recorded" not in str(r.recording)
