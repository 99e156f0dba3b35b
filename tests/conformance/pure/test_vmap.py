"""The vmap_method decides how often a host function is called."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._vmap_methods import LOOPED
from tests.conformance._parameters import eager_or_jit, like_first, shapes
from tests.interface import VMAP_METHODS
from tests.lines import call_shapes


def add(x, y):
    return x + y


HOST_SHAPES = {
    "sequential": 4 * [((), ())],
    "sequential_unrolled": 4 * [((), ())],
    "expand_dims": [((4,), (1,))],
    "broadcast_all": [((4,), (4,))],
    "legacy_vectorized": [((4,), ())],
}


@eager_or_jit
@pytest.mark.parametrize(("method", "calls"), HOST_SHAPES.items(), ids=HOST_SHAPES)
def test_vmap_method_decides_shapes_and_number_of_calls(pure, spy, run, method, calls, compiled):
    """x is a batch of 4 and y is unbatched."""
    host, seen = spy(add)
    f = pure(host, like_first, vmap_method=method)
    x = np.float32([1, 2, 3, 4])
    returned_value = run(compiled(jax.vmap(f, in_axes=(0, None))), x, np.float32(10))
    np.testing.assert_array_equal(returned_value, x + 10)
    assert shapes(seen) == calls


@pytest.mark.parametrize("method", VMAP_METHODS)
def test_recording_has_the_shapes_of_the_host_arguments(method, run):
    seen = []

    @jaxcb.pure(result="x", vmap_method=method)
    def plus(x, y):
        seen.append((x.shape, y.shape))
        return x + y

    with jaxcb.record() as r:
        run(jax.jit(jax.vmap(plus, in_axes=(0, None))), np.float32([1, 2, 3, 4]), np.float32(10))
    assert seen == HOST_SHAPES[method]
    calls = r.recording.calls_of("plus")
    assert len(calls) == len(r.recording) == len(seen)
    for found, shown in zip(call_shapes(r.recording), seen, strict=True):
        assert found == (shown, ((shown[0], "float32"),), ((4, method, (True, False)),))


@pytest.mark.parametrize("method", LOOPED)
def test_zero_elements_make_zero_calls(our_pure, spy, run, method):
    host, seen = spy(np.sin)
    f = our_pure(host, like_first, vmap_method=method)
    returned_value = run(jax.vmap(f), np.zeros((0, 3), np.float32))
    assert (returned_value.shape, returned_value.dtype) == ((0, 3), np.float32)
    assert seen == []


@pytest.mark.parametrize("method", LOOPED)
def test_vmap_of_unbatched_arguments_makes_one_call(pure, spy, run, method):
    """All batch elements get the same value."""
    host, seen = spy(np.sin)
    f = pure(host, like_first, vmap_method=method)
    returned_value = run(
        jax.vmap(lambda _: f(np.float32(1)), axis_size=3, in_axes=None, out_axes=None), 0
    )
    np.testing.assert_allclose(returned_value, np.sin(np.float32(1)), rtol=1e-6)
    assert len(seen) == 1
