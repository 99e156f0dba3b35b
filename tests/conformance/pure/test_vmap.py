"""The vmap_method, or the old `vectorized=`, decides how often a host function is called."""

import warnings

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS
from tests._vmap_methods import LOOPED
from tests.conformance._parameters import SCALAR, TWO, X, eager_or_jit, like_first, shapes


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
    for call, shown in zip(calls, seen, strict=True):
        lowered = r.recording.lowered[call.lowered]
        operands, (result,) = lowered.host_avals()
        assert tuple(aval.shape for aval in operands) == shown
        assert (result.shape, result.dtype) == (shown[0], "float32")
        (level,) = lowered.levels
        assert (level.size, level.method, level.batched) == (4, method, (True, False))


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


METHODS = {True: "legacy_vectorized", False: "sequential"}


def old(host, vectorized):
    def call(x, y):
        like = jax.ShapeDtypeStruct(np.shape(x), np.float32)
        return jaxcb.pure_callback(host, like, x, y, vectorized=vectorized)

    return call


def new(host, vmap_method):
    def call(x, y):
        like = jax.ShapeDtypeStruct(np.shape(x), np.float32)
        return jax.pure_callback(host, like, x, y, vmap_method=vmap_method)

    return call


@pytest.mark.parametrize(("vectorized", "method"), METHODS.items())
def test_vectorized_does_the_same_as_its_vmap_method_in_jax(spy, run, vectorized, method):
    found = []
    for f in (lambda host: old(host, vectorized), lambda host: new(host, method)):
        host, seen = spy(lambda x, y: np.asarray(x) + np.asarray(y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            result = run(jax.jit(jax.vmap(f(host), in_axes=(0, None))), X, TWO)
        np.testing.assert_array_equal(result, X + TWO)
        found.append(shapes(seen))
    assert found[0] == found[1]
    assert len(found[0]) == (1 if vectorized else 3)


@pytest.mark.parametrize(("vectorized", "method"), METHODS.items())
def test_warning_names_the_method_to_use_and_points_at_the_call(vectorized, method):
    with pytest.warns(DeprecationWarning, match=rf"vmap_method='{method}'") as caught:
        jaxcb.pure_callback(np.sin, SCALAR, TWO, vectorized=vectorized)
    (warning,) = caught
    assert warning.filename == __file__


def test_leaving_vectorized_out_does_not_warn():
    """A warning would fail the test, because pytest turns warnings into errors."""
    jaxcb.pure_callback(np.sin, SCALAR, TWO)
    jaxcb.pure_callback(np.sin, SCALAR, TWO, vectorized=None)


@pytest.mark.parametrize("vectorized", METHODS)
@pytest.mark.parametrize("method", ["sequential", "expand_dims", "legacy_vectorized"])
def test_both_options_are_an_error(vectorized, method):
    seen = []
    with pytest.raises(ValueError, match="vmap_method"):
        jaxcb.pure_callback(seen.append, SCALAR, TWO, vectorized=vectorized, vmap_method=method)
    assert seen == []


@pytest.mark.parametrize("value", [3, 0, "yes", np.float32(1), np.True_], ids=repr)
def test_other_values_are_an_error_that_names_the_new_option(value):
    """They are not passed to the host function as a keyword argument either."""
    seen = []
    with pytest.raises(ValueError, match="vmap_method"):
        jaxcb.pure_callback(seen.append, SCALAR, TWO, vectorized=value)
    assert seen == []
