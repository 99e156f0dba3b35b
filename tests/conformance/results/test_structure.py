"""Results must have the declared shape.

Lists and tuples are interchangeable; drop-ins take the leaves of any other structure, as JAX does.
"""

import collections
import warnings

import jax
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import SCALAR, THREE, X, assert_readable, eager_or_jit

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


OTHER_STRUCTURES = {
    "list for an array": ([X], THREE, "oracle returned a list of 1, expected an array float32[3]"),
    "dict for an array": (
        {"a": X}, THREE, "oracle returned a dict of 'a', expected an array float32[3]"
    ),
    "nested tuple": (
        ((1.0, 2.0), ()), (SCALAR, SCALAR),
        "oracle[0] returned a tuple of 2, expected an array float32[]"
    ),
    "list in a dict": (
        {"a": [1.0], "b": X}, {"a": SCALAR, "b": THREE},
        "oracle['a'] returned a list of 1, expected an array float32[]",
    ),
    "other keys": (
        {"b": 2.0, "a": X}, {"x": THREE, "y": SCALAR},
        "oracle returned a dict of 'a', 'b', expected a dict of 'x', 'y': oracle['x'] is missing",
    ),
    "tuple for a namedtuple": (
        (1.0, X), Point(SCALAR, THREE), "oracle returned a tuple of 2, expected a Point of x, y"
    ),
}  # fmt: skip


@pytest.fixture(params=["pure", "io"])
def flavor(request):
    return request.param


DROP_INS = {
    "pure": (jaxcb.pure_callback, jax.pure_callback),
    "io": (jaxcb.io_callback, io_callback),
}
other_structures = pytest.mark.parametrize(
    ("returned_value", "result", "words"), OTHER_STRUCTURES.values(), ids=OTHER_STRUCTURES
)


def leaves_of(run, f, *args):
    result = run(f, *args)
    return jax.tree.structure(result), [leaf.tolist() for leaf in jax.tree.leaves(result)]


@eager_or_jit
@other_structures
def test_drop_in_uses_the_leaves_of_another_structure_as_jax_does_and_warns(
    run, flavor, returned_value, result, words, compiled
):
    returned_value = jax.tree.map(np.float32, returned_value)
    mine, jaxs = DROP_INS[flavor]

    def oracle():
        return returned_value

    theirs = leaves_of(run, compiled(lambda: jaxs(oracle, result)))
    with pytest.warns(jaxcb.ResultStructureWarning) as reported:
        ours = leaves_of(run, compiled(lambda: mine(oracle, result)))
    assert ours == theirs
    assert ours == (
        jax.tree.structure(result),
        [x.tolist() for x in jax.tree.leaves(returned_value)],
    )
    (warning,) = reported
    assert f"{words} ({flavor} callback, " in str(warning.message)
    assert warning.filename == __file__


@eager_or_jit
@other_structures
def test_decorator_refuses_another_structure(
    failure, flavor, returned_value, result, words, compiled
):
    returned_value = jax.tree.map(np.float32, returned_value)

    def oracle():
        return returned_value

    registered = getattr(jaxcb, flavor)(result=result)(oracle)
    error = failure(compiled(registered))
    assert isinstance(error, jaxcb.stack.ResultError)
    assert str(error).startswith(words.partition("returned")[0])


@pytest.mark.parametrize(
    ("returned_value", "result"),
    [
        ([X, X], THREE), ([X[:2]], THREE), ([], THREE), (None, THREE), ([1.0, 2.0, 3.0], THREE),
        ((X,), (THREE, SCALAR)),
    ],
    ids=[
        "one leaf more", "another shape", "no leaf", "None", "list of numbers", "one leaf less",
    ],
)  # fmt: skip
@eager_or_jit
def test_leaves_that_do_not_fit_are_an_error_of_drop_ins_as_in_jax(
    failure, flavor, returned_value, result, compiled
):
    mine, jaxs = DROP_INS[flavor]
    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.block_until_ready(compiled(lambda: jaxs(lambda: returned_value, result))())
        jax.effects_barrier()
    error = failure(compiled(lambda: mine(lambda: returned_value, result)))
    assert isinstance(error, jaxcb.stack.ResultError)


@eager_or_jit
def test_array_where_nothing_was_declared_is_an_error_as_in_jax(failure, compiled):
    f = lambda io_callback: compiled(lambda: io_callback(lambda: X, None))  # noqa: E731
    with pytest.raises(jax.errors.JaxRuntimeError):
        f(io_callback)(), jax.effects_barrier()
    assert isinstance(failure(f(jaxcb.io_callback)), jaxcb.stack.ResultError)


def test_batch_in_another_structure_passes_with_a_warning_as_in_jax(run):
    """Under "expand_dims" the leaves have the batch axis; "sequential" warns at every call."""
    xs = np.ones((5, 3), np.float32)
    for method in ("expand_dims", "sequential"):
        f = lambda lib: run(  # noqa: E731
            jax.vmap(lambda x: lib(lambda x: [2 * np.asarray(x)], THREE, x, vmap_method=method)),  # noqa: B023
            xs,
        )
        with pytest.warns(jaxcb.ResultStructureWarning, match="returned a list of 1"):
            mine = f(jaxcb.pure_callback)
        np.testing.assert_array_equal(mine, 2 * xs)
        np.testing.assert_array_equal(mine, f(jax.pure_callback))


def test_result_from_an_executor_in_another_structure_passes_with_a_warning():
    f = lambda x: jaxcb.pure_callback(  # noqa: E731
        lambda x: [2 * x], THREE, x, vmap_method="sequential", executor="threads"
    )
    xs = np.arange(15, dtype=np.float32).reshape(5, 3)
    with pytest.warns(jaxcb.ResultStructureWarning, match="returned a list of 1"):
        np.testing.assert_array_equal(jax.vmap(f)(xs), 2 * xs)


def test_call_in_a_loop_warns_once_under_pythons_own_filter():
    def oracle():
        return [X]

    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("default")
        for _ in range(3):
            jaxcb.pure_callback(oracle, THREE)
    assert [one.category for one in reported] == [jaxcb.ResultStructureWarning]


def test_warning_that_a_filter_makes_an_error_is_the_error_of_the_call(failure):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        error = failure(jax.jit(lambda: jaxcb.pure_callback(lambda: [X], THREE)))
    assert isinstance(error, jaxcb.ResultStructureWarning)
    assert error.__context__ is None


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
