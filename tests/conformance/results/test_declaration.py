"""An expression or a function declares the result, and is checked before any host call."""

import functools

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import THREE, X
from tests.interface import VMAP_METHODS


def test_expression_may_use_names_attributes_indices_and_tuples(run):
    seen = []

    @jaxcb.pure(result="(z, z.shape[:1])")
    def halves(v, z):
        seen.append((v.shape, z.shape))
        return z / 2, z[:, 0]

    v, z = np.int32(1), np.arange(6, dtype=np.float32).reshape(2, 3)
    half, first = run(jax.jit(halves), v, z)
    np.testing.assert_array_equal(half, z / 2)
    np.testing.assert_array_equal(first, z[:, 0])
    assert seen == [((), (2, 3))]


def test_expression_none_declares_no_result(run):
    seen = []

    @jaxcb.io(result="None")
    def log(x):
        seen.append(float(x))

    assert run(jax.jit(log), np.float32(2)) is None
    assert seen == [2]


def test_expression_may_use_parameters_passed_by_position_keyword_or_default(run):
    seen = []

    @jaxcb.pure(result="y")
    def second(x, y=X):
        seen.append(None)
        return np.asarray(y) + np.asarray(x)

    one = np.float32(1)
    np.testing.assert_array_equal(run(jax.jit(second), one, X), X + 1)
    np.testing.assert_array_equal(run(jax.jit(lambda x, y: second(y=y, x=x)), one, X), X + 1)
    np.testing.assert_array_equal(run(jax.jit(second), one), X + 1)
    assert len(seen) == 3


def test_function_of_the_parameters_declares_the_result(run):
    seen = []

    @jaxcb.pure(result=lambda x, y: jax.ShapeDtypeStruct((*x.shape, *y.shape), x.dtype))
    def outer(x, y):
        seen.append(None)
        return np.outer(x, y)

    np.testing.assert_array_equal(run(jax.jit(outer), X, X[:2]), np.outer(X, X[:2]))
    assert len(seen) == 1


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io], ids=["pure", "io"])
@pytest.mark.parametrize("form", ["bare", "called"])
def test_decorating_without_a_result_is_an_error(flavor, form):
    with pytest.raises(ValueError, match=r"oracle[\s\S]*result"):

        @(flavor if form == "bare" else flavor())
        def oracle(x):
            return x


@pytest.mark.parametrize("method", ["parallel", "Sequential", 3, True], ids=repr)
def test_error_about_an_unknown_vmap_method_lists_the_methods(our_pure, method):
    """It is raised even outside vmap, before any host call."""
    seen = []
    with pytest.raises(ValueError) as caught:
        our_pure(seen.append, THREE, vmap_method=method)(X)
    message = str(caught.value)
    assert [word for word in (*VMAP_METHODS, repr(method)) if word not in message] == []
    assert seen == []


def test_unknown_vmap_method_is_a_value_error_as_with_jax(pure):
    """Existing code catches this class."""
    seen = []
    with pytest.raises(ValueError, match="vmap_method"):
        pure(seen.append, THREE, vmap_method="parallel")(X)
    assert seen == []


def test_decorated_function_keeps_its_name_and_docstring():
    @jaxcb.pure(result="x")
    def oracle(x):
        """Knows."""
        return x

    assert (oracle.__name__, oracle.__doc__) == ("oracle", "Knows.")
    assert "oracle" in repr(oracle)


def test_partial_and_callable_objects_are_host_functions_too(our_pure, run):
    seen = []

    def scale(factor, x):
        seen.append(factor)
        return factor * x

    class Doubling:
        def __call__(self, x):
            return scale(np.float32(2), x)

    for host in (functools.partial(scale, np.float32(2)), Doubling()):
        np.testing.assert_array_equal(run(jax.jit(our_pure(host, THREE)), X), 2 * X)
    assert seen == [2, 2]
