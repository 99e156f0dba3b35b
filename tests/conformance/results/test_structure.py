"""Results must have the declared shape; lists and tuples are interchangeable in structures."""

import collections

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._arrays import SCALAR, THREE, X
from tests.conformance._messages import assert_readable
from tests.conformance._parameters import eager_or_jit

# Structure

Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("returned_value", "result"),
    [
        ([1.0, 2.0], (SCALAR, SCALAR)),
        ((1.0, 2.0), [SCALAR, SCALAR]),
        ({"a": [1.0, (2.0,)]}, {"a": (SCALAR, [SCALAR])}),
        ({"b": 2.0, "a": 1.0}, {"a": SCALAR, "b": SCALAR}),
        (Point(1.0, 2.0), (SCALAR, SCALAR)),
        (Point(1.0, Point(y=2.0, x=[])), [SCALAR, ((), SCALAR)]),
    ],
    ids=[
        "list for tuple", "tuple for list", "inside a dict", "keys in another order",
        "namedtuple for tuple", "namedtuple in one, for lists",
    ],
)  # fmt: skip
def test_lists_and_tuples_are_interchangeable(returning, run, returned_value, result):
    """The order of the leaves is unambiguous, and JAX gets the declared structure."""
    f, seen = returning(jax.tree.map(np.float32, returned_value), result)
    got = run(jax.jit(f), X)
    assert jax.tree.structure(got) == jax.tree.structure(result)
    assert jax.tree.leaves(got) == [1, 2]
    assert len(seen) == 1


def test_namedtuple_of_numpy_is_accepted_for_a_declared_tuple():
    """np.linalg.eigh returns a namedtuple, EighResult, which JAX accepts too."""
    m = np.float32([[2, 1], [1, 2]])
    mine = jax.jit(lambda m: jaxcb.pure_callback(np.linalg.eigh, (m[0], m), m))(m)
    theirs = jax.jit(lambda m: jax.pure_callback(np.linalg.eigh, (m[0], m), m))(m)
    assert type(mine) is type(theirs) is tuple
    assert all(map(np.array_equal, mine, theirs))
    np.testing.assert_allclose(mine[0], [1, 3], rtol=1e-6)


# Shape

WRONG_SHAPES = {
    "longer": (np.ones(4, np.float32), THREE, ["(4,)", "(3,)"]),
    "scalar for array": (np.float32(1), THREE, ["()", "(3,)"]),
    "array for scalar": (np.ones(1, np.float32), SCALAR, ["(1,)", "()"]),
    "one axis more": (np.ones((1, 3), np.float32), THREE, ["(1, 3)", "(3,)"]),
    "empty": (np.ones(0, np.float32), THREE, ["(0,)", "(3,)"]),
}


@eager_or_jit
@pytest.mark.parametrize(
    ("returned_value", "result", "words"), WRONG_SHAPES.values(), ids=WRONG_SHAPES
)
def test_result_of_another_shape_is_an_error_that_names_both_shapes(
    returning, failure, returned_value, result, words, compiled
):
    """Results are not broadcast to the declared shape, even where NumPy would do so."""
    f, seen = returning(returned_value, result)
    message = assert_readable(failure(compiled(f), X))
    assert [word for word in words if word not in message] == []
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("method", "shape"), [("sequential", (3,)), ("expand_dims", (5, 3)), ("broadcast_all", (5, 3))]
)
def test_vmap_method_decides_the_expected_shape(returning, run, failure, method, shape):
    """It is the shape of one batch element or of the batch. A wrong result ends the run."""
    f, seen = returning(np.ones(shape, np.float32), THREE, vmap_method=method)
    np.testing.assert_array_equal(run(jax.vmap(f), np.ones((5, 2), np.float32)), np.ones((5, 3)))
    assert len(seen) == (5 if method == "sequential" else 1)
    f, seen = returning(np.ones((7, 7), np.float32), THREE, vmap_method=method)
    message = assert_readable(failure(jax.vmap(f), np.ones((5, 2), np.float32)))
    assert "(7, 7)" in message and str(shape) in message
    assert len(seen) == 1
