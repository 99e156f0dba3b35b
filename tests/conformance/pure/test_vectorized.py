"""`vectorized=`, which JAX removed from jax.pure_callback, still works here and warns."""

import warnings

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._arrays import SCALAR, TWO, X, shapes

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
