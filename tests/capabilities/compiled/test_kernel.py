"""Compiled functions store what NumPy computes, for every dtype, rank, layout and vmap."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.runtime import _nrt_python

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS
from jupyter_jaxcb.stack.results import ResultError

INTEGERS = [f"{sign}int{bits}" for sign, bits in itertools.product(["", "u"], [8, 16, 32, 64])]
DTYPES = [*INTEGERS, "float32", "float64", "complex64", "complex128", "bool"]
METHODS = list(VMAP_METHODS)


def minus(x, y):
    return x - y


def same(x):
    return x


def compiled(function, result="x", **options):
    return jaxcb.pure(function, result=result, compile="numba", **options)


def struct(shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_passes_through_as_a_number_and_as_an_array(dtype):
    kind = np.dtype(dtype)
    extremes = [0, 1] if kind.kind not in "iu" else [np.iinfo(kind).min, np.iinfo(kind).max]
    if kind.kind == "c":
        extremes = [1 + 2j, -3.5j]
    numbers = np.array(extremes, dtype)
    callback = jax.jit(compiled(same))
    with jax.enable_x64(True):
        for x in (numbers, numbers[0], numbers[1]):
            returned = callback(x)
            assert returned.dtype == kind
            np.testing.assert_array_equal(returned, x)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (1, 1), (5, 1, 2)])
def test_arrays_of_every_rank_arrive_and_return_in_row_major_order(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    first = tuple(n - 1 for n in shape)

    def changed(x):
        copy = x.copy()
        copy[first] = x.size
        return copy

    np.testing.assert_array_equal(jax.jit(compiled(changed))(x), changed(x))


def views(x):
    return x[::-1], x[::2], x.T, x[:, 1:], x[1]


def shapes_of_views(x):
    rows, columns = x.shape
    shapes = [(rows, columns), ((rows + 1) // 2, columns), (columns, rows), (rows, columns - 1)]
    return tuple(struct(shape, x.dtype) for shape in [*shapes, (columns,)])


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_arrays_of_another_layout_are_stored_in_row_major_order(dtype):
    x = np.arange(15, dtype=dtype).reshape(5, 3)
    returned = jax.jit(compiled(views, shapes_of_views))(x)
    for stored, expected in zip(returned, views(x), strict=True):
        assert stored.dtype == expected.dtype
        np.testing.assert_array_equal(stored, expected)


def test_views_of_every_batch_element_are_stored_in_row_major_order():
    xs = np.arange(30, dtype=np.float32).reshape(2, 5, 3)
    returned = jax.jit(jax.vmap(compiled(views, shapes_of_views)))(xs)
    for n, x in enumerate(xs):
        for stored, expected in zip(returned, views(x), strict=True):
            np.testing.assert_array_equal(stored[n], expected)


def test_nested_tuples_of_results_keep_their_places():
    def many(x):
        return x + 1, (x.sum(), (x[:1] * 2, x[0])), x[::-1]

    def declared(x):
        return x, (struct(()), (struct((1,)), struct(()))), x

    x = np.float32([3, 4, 6])
    returned = jax.jit(compiled(many, declared))(x)
    assert jax.tree.structure(returned) == jax.tree.structure(many(x))
    for stored, expected in zip(jax.tree.leaves(returned), jax.tree.leaves(many(x)), strict=True):
        np.testing.assert_array_equal(stored, expected)


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "declared"),
    [("float64", "float32"), ("int64", "int8"), ("uint64", "int16"), ("int8", "float32"),
     ("float32", "complex64"), ("int32", "complex64"), ("complex128", "complex64")],
)  # fmt: skip
def test_numbers_that_fit_are_converted_to_the_declared_dtype(given, declared):
    numbers = np.array([3, 100], given)
    with jax.enable_x64(True):
        for x in (numbers, numbers[1]):
            returned = jax.jit(compiled(same, struct(x.shape, declared)))(x)
            assert returned.dtype == declared
            np.testing.assert_array_equal(returned, x)


# Two integers that fit, and two that do not.
FITS = {
    ("int64", "int8"): (127, -128, 128, -129),
    ("int64", "uint8"): (255, 0, 256, -1),
    ("int32", "uint32"): (2**31 - 1, 0, -1, -(2**31)),
    ("uint16", "int16"): (2**15 - 1, 0, 2**15, 2**16 - 1),
    ("int8", "uint64"): (127, 0, -1, -128),
    ("uint64", "int64"): (2**63 - 1, 0, 2**63, 2**64 - 1),
    ("int64", "uint64"): (2**63 - 1, 0, -1, -(2**63)),
    ("int64", "float32"): (2**24, -(2**62), 2**24 + 1, 2**63 - 1),
    ("uint64", "float64"): (2**53, 2**63, 2**53 + 1, 2**64 - 1),
    ("int64", "complex64"): (2**24, -(2**62), 2**24 + 1, -(2**24) - 1),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("form", ["number", "array"])
@pytest.mark.parametrize("pair", FITS, ids=" to ".join)
def test_an_integer_that_the_declared_dtype_cannot_hold_is_an_error(pair, form, failure):
    given, declared = pair
    *fitting, low, high = (np.array(x if form == "number" else [0, x], given) for x in FITS[pair])
    shape = low.shape
    with jax.enable_x64(True):
        callback = jax.jit(compiled(same, struct(shape, declared)))
        for x in fitting:
            np.testing.assert_array_equal(callback(x), x.astype(declared))
        for x in (low, high):
            error, _ = failure(callback, x)
            assert type(error) is ResultError


@pytest.mark.parametrize("form", ["number", "array"])
@pytest.mark.parametrize("declared", ["int8", "uint32", "float32"])
def test_cast_converts_integers_that_do_not_fit(declared, form):
    x = np.array(2**40 + 3 if form == "number" else [2**40 + 3, -1], "int64")
    with jax.enable_x64(True):
        returned = jax.jit(compiled(same, struct(x.shape, declared), cast=True))(x)
    np.testing.assert_array_equal(returned, x.astype(declared))


@pytest.mark.parametrize("shape", [(), (2,)], ids=["number", "array"])
def test_a_float64_too_large_for_float32_becomes_infinite(shape):
    x = np.full(shape, -1e300)
    with jax.enable_x64(True):
        returned = jax.jit(compiled(same, struct(shape)))(x)
    np.testing.assert_array_equal(returned, np.full(shape, -np.inf))


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_integers_that_are_computed_from_others_have_64_bits(failure):
    """The compiled function returns a number that NumPy would wrap around to -2."""

    def double(x):
        return 2 * x

    assert int(jax.jit(compiled(double, cast=True))(np.int32(5))) == 10
    error, _ = failure(jax.jit(compiled(double)), np.int32(2**31 - 1))
    assert type(error) is ResultError
    assert "Compiled integers have 64 bits" in str(error)


def run_both(in_axes, method, x, y):
    """Return the result and the batch elements called, when compiled and in Python."""
    found = []
    for compiler in ("numba", None):
        callback = jaxcb.pure(minus, result="x", vmap_method=method, compile=compiler)
        for axes in in_axes:
            callback = jax.vmap(callback, in_axes=axes)
        program = jax.jit(callback)
        with jaxcb.record() as r:
            result = np.asarray(program(x, y))
        found.append((result, sorted(call.element for call in r.recording)))
    return found


@st.composite
def nests(draw):
    """Draw the axes of up to three vmaps, a vmap method, two arguments, and the batch sizes."""
    method = draw(st.sampled_from(METHODS))
    looped = method.startswith("sequential")
    shape = draw(st.sampled_from([(), (2,)]))
    in_axes, sizes, shapes = [], [], [list(shape), list(shape)]
    # With the other methods each level adds an axis, and numba compiles for each rank.
    for _ in range(draw(st.integers(1, 3 if looped else 2))):
        sizes.append(draw(st.integers(0, 3)))
        on = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
        if method == "legacy_vectorized":
            on = (True, True)
        axes = [draw(st.integers(0, len(own))) if yes else None
                for yes, own in zip(on, shapes, strict=True)]  # fmt: skip
        for own, axis in zip(shapes, axes, strict=True):
            if axis is not None:
                own.insert(axis, sizes[-1])
        in_axes.append(tuple(axes))
    dtype = draw(st.sampled_from([np.float32, np.int32] if looped and not shape else [np.float32]))
    x, y = (np.arange(np.prod(own)).astype(dtype).reshape(own) for own in shapes)
    return in_axes, method, x, y * 100, sizes


@pytest.mark.long
@settings(max_examples=15)
@given(nests())
def test_vmap_of_a_compiled_function_is_that_of_the_python_function(nest):
    in_axes, method, x, y, sizes = nest
    (result, elements), (expected, python_elements) = run_both(in_axes, method, x, y)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    assert elements == python_elements
    if method.startswith("sequential") and expected.size:
        assert elements == list(range(np.prod(sizes)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [0, 1, 4])
def test_every_vmap_method_takes_every_batch_size(method, size):
    """An empty batch makes no call, as in Python."""
    x, y = np.arange(size * 2, dtype=np.float32).reshape(2, size)
    (result, elements), (expected, python_elements) = run_both([0], method, x, y)
    np.testing.assert_array_equal(result, expected)
    assert elements == python_elements
    assert len(elements) == (size if method.startswith("sequential") else min(size, 1))


def test_an_argument_that_no_vmap_batches_is_the_same_for_all_elements():
    def place(x, table):
        return table[int(x)]

    callback = compiled(place, "x")
    table = np.float32([10, 20, 30])
    nested = jax.vmap(jax.vmap(callback, in_axes=(0, None)), in_axes=(0, None))
    xs = np.float32([[0, 2], [1, 1], [2, 0]])
    np.testing.assert_array_equal(jax.jit(nested)(xs, table), table[xs.astype(int)])


def test_vmap_without_a_method_is_refused():
    callback = compiled(same, vmap_method=None)
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.vmap(callback)(jnp.ones(3))


def test_results_are_freed_after_each_call(request):
    """numba counts what it allocates and frees."""
    _nrt_python.memsys_enable_stats()
    request.addfinalizer(_nrt_python.memsys_disable_stats)

    def fresh(x):
        return np.full(1000, x, np.float32), x

    program = jax.jit(jax.vmap(compiled(fresh, (struct((1000,)), struct(())))))
    program(np.arange(50.0))[0].block_until_ready()
    allocated, freed = _nrt_python.memsys_get_stats_alloc(), _nrt_python.memsys_get_stats_free()
    program(np.arange(50.0))[0].block_until_ready()
    assert _nrt_python.memsys_get_stats_alloc() - allocated >= 50
    assert (
        _nrt_python.memsys_get_stats_free() - freed
        == _nrt_python.memsys_get_stats_alloc() - allocated
    )
