"""Host functions under vmap easily raise errors, get wrong shapes or silently return wrong values.

It depends on the vmap_method (jax-ml/jax#23624, jax-ml/jax#19978): without one, vmap raises an
error, and the methods that make one call are correct only for functions that handle the batch. Ours
has the same methods with the same meaning; the default of decorated functions is correct for all.
"""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import VMAP_METHODS

from ._both import OURS, THEIRS

ONE_CALL_METHODS = ("expand_dims", "broadcast_all", "legacy_vectorized")
X = np.float32([1, 2, 3, 4])
Y = np.float32([10, 20, 30, 40, 50])
ROWS = np.float32([[1, 2], [3, 8], [5, 4]])
GRIDS = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4) % 7

both = pytest.mark.parametrize("callbacks", [THEIRS, OURS], ids=["theirs", "ours"])


def like_first(x, *others):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# Functions of one array that do not handle batches
UNBATCHED = {
    "divide by the maximum": lambda x: x / x.max(),
    "sort": lambda x: np.sort(x, axis=0),
    "cumulate": lambda x: np.cumsum(x, axis=0, dtype=x.dtype),
    "first element": lambda x: np.full_like(x, x[0]),
    "size": lambda x: x * x.size,
}


@both
def test_error_of_vmap_without_a_method_lists_the_methods(callbacks):
    seen = []
    with pytest.raises(NotImplementedError) as caught:
        jax.vmap(lambda x: callbacks.pure_callback(seen.append, like_first(x), x))(X)
    assert [method for method in VMAP_METHODS if repr(method) not in str(caught.value)] == []
    assert seen == []


@both
@pytest.mark.parametrize("method", ONE_CALL_METHODS)
def test_function_that_ignores_batching_is_wrong_with_one_call_methods(callbacks, method):
    """Neither JAX's callbacks nor ours raise an error."""

    def over_maximum(x):
        x = np.asarray(x)
        return x / x.max()

    f = jax.vmap(lambda x: callbacks.pure_callback(over_maximum, x, x, vmap_method=method))
    np.testing.assert_array_equal(f(ROWS), ROWS / ROWS.max())
    assert not np.array_equal(f(ROWS), ROWS / ROWS.max(axis=1, keepdims=True))


@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("function", UNBATCHED.values(), ids=UNBATCHED)
def test_decorated_function_that_ignores_batching_is_correct(function, compiled):
    f = jaxcb.pure(result="x")(lambda x: function(x))
    rows = np.stack([function(row) for row in ROWS])
    np.testing.assert_array_equal(compiled(jax.vmap(f))(ROWS), rows)
    columns = np.stack([function(column) for column in ROWS.T], axis=1)
    np.testing.assert_array_equal(compiled(jax.vmap(f, in_axes=1, out_axes=1))(ROWS), columns)
    nested = np.stack([np.stack([function(x) for x in grid]) for grid in GRIDS])
    np.testing.assert_array_equal(compiled(jax.vmap(jax.vmap(f)))(GRIDS), nested)
    assert nested.shape == GRIDS.shape


@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_decorated_function_is_correct_if_each_vmap_batches_another_argument(compiled):
    """Every call gets one row of the first batch and one number of the second."""

    def scaled(x, y):
        assert (x.shape, y.shape) == ((2,), ())
        return x / x.max() * y

    f = jaxcb.pure(result="x")(scaled)
    nested = jax.vmap(jax.vmap(f, in_axes=(None, 0)), in_axes=(0, None))
    expected = np.stack([np.stack([scaled(x, y) for y in Y]) for x in ROWS])
    np.testing.assert_allclose(compiled(nested)(ROWS, Y), expected, rtol=1e-6)


@both
def test_broadcasting_works_under_nested_vmap_with_expand_dims_and_not_legacy_vectorized(callbacks):
    """legacy_vectorized passes shapes (4,) and (5,), which NumPy cannot broadcast."""

    def add(x, y):
        return np.asarray(x) + np.asarray(y)

    def nested(method):
        def f(x, y):
            return callbacks.pure_callback(add, like_first(x), x, y, vmap_method=method)

        return jax.block_until_ready(jax.vmap(lambda x: jax.vmap(lambda y: f(x, y))(Y))(X))

    with pytest.raises(jax.errors.JaxRuntimeError, match=r"\(4,\) \(5,\)"):
        nested("legacy_vectorized")
    np.testing.assert_array_equal(nested("expand_dims"), X[:, None] + Y)
