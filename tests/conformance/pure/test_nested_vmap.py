"""Under nested vmaps every host call gets the right elements, in the same order as with JAX."""

import math

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._vmap_methods import LOOPED
from tests.conformance._parameters import like_first, shapes, values


def scaled(x, y):
    """Return ``x * y``, where x has one more axis than y, behind any batch axes."""
    return x * np.expand_dims(y, -1)


NESTS = {  # in_axes of every vmap, outermost first; x is (2,), y is ()
    "two, one each": [(None, 0), (1, None)],
    "two, crossed": [(2, 0), (0, None)],
    "two, last axes": [(-1, -1), (1, 0)],
    "three, both": [(1, 2), (-1, 0), (0, 0)],
    "three, mixed": [(2, None), (None, 0), (1, None)],
}
SIZES = (3, 4, 2)
nests = pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)


def vmapped(f, nest):
    for axes in reversed(nest):
        f = jax.vmap(f, in_axes=axes)
    return f


def nest_arguments(nest):
    """Return x and y with distinct elements and a batch axis for each vmap that maps over them."""
    cores, arguments = ((2,), ()), []
    for position, core in enumerate(cores):
        shape = list(core)
        for axes, size in reversed(list(zip(nest, SIZES, strict=False))):
            if (axis := axes[position]) is not None:
                shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, size)
        count = math.prod(shape)
        arguments.append(np.arange(1, 1 + count, dtype=np.float32).reshape(shape))
    return arguments


def looped(f, nest, sizes, arguments):
    """Return what nested vmaps of `f` should return, computed with Python loops."""
    if not nest:
        return f(*arguments)
    (axes, *inner), (size, *rest) = nest, sizes
    return np.stack(
        [
            looped(
                f,
                inner,
                rest,
                [
                    arg if axis is None else np.take(arg, element, axis)
                    for arg, axis in zip(arguments, axes, strict=True)
                ],
            )
            for element in range(size)
        ]
    )


@nests
@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all"])
def test_batch_axes_come_first_with_the_outermost_vmap_leading(pure, spy, run, nest, method):
    """With expand_dims, arguments have a size-1 axis for every vmap that does not batch them."""
    host, seen = spy(scaled)
    arguments = nest_arguments(nest)
    f = pure(host, like_first, vmap_method=method)
    returned_value = run(jax.jit(vmapped(f, nest)), *arguments)
    np.testing.assert_array_equal(returned_value, looped(scaled, nest, SIZES, arguments))

    def batch_axes(position):
        full = method == "broadcast_all"
        return tuple(
            size if full or axes[position] is not None else 1
            for axes, size in zip(nest, SIZES, strict=False)
        )

    assert shapes(seen) == [((*batch_axes(0), 2), batch_axes(1))]


@nests
@pytest.mark.parametrize("method", LOOPED)
def test_sequential_methods_call_once_per_nested_element(pure, spy, run, nest, method):
    """Every call gets arguments of the unbatched shapes."""
    host, seen = spy(scaled)
    arguments = nest_arguments(nest)
    f = pure(host, like_first, vmap_method=method)
    returned_value = run(jax.jit(vmapped(f, nest)), *arguments)
    np.testing.assert_array_equal(returned_value, looped(scaled, nest, SIZES, arguments))
    assert shapes(seen) == math.prod(SIZES[: len(nest)]) * [((2,), ())]


@pytest.mark.long
@nests
def test_nested_elements_are_visited_in_the_same_order_as_with_jax(
    our_pure, jax_pure, spy, run, nest
):
    """The outermost axis varies fastest, whichever axes the arguments are batched over."""
    (host, seen), (jax_host, jax_seen) = spy(scaled), spy(scaled)
    arguments = nest_arguments(nest)
    for make, function in ((our_pure, host), (jax_pure, jax_host)):
        run(vmapped(make(function, like_first, vmap_method="sequential"), nest), *arguments)
    assert len(seen) == math.prod(SIZES[: len(nest)])
    assert values(seen) == values(jax_seen)


@nests
def test_legacy_vectorized_adds_batch_axes_only_to_batched_arguments(
    our_pure, jax_pure, spy, run, nest
):
    """Our callbacks also refuse the same programs as JAX's."""

    def host_of(x, y):
        batch = max(x.shape[:-1], y.shape, key=len)
        return np.ones((*batch, 2), np.float32)

    def outcome(make):
        host, seen = spy(host_of)
        f = make(host, like_first, vmap_method="legacy_vectorized")
        try:
            returned_value = run(jax.jit(vmapped(f, nest)), *nest_arguments(nest))
        except Exception:
            return "refused", shapes(seen)
        return returned_value.shape, shapes(seen)

    assert outcome(our_pure) == outcome(jax_pure)


@pytest.mark.parametrize(
    ("outer", "inner"), [("sequential", "expand_dims"), ("expand_dims", "sequential")]
)
def test_callbacks_under_the_same_vmaps_may_use_different_methods(spy, run, outer, inner):
    (first, firsts), (second, seconds) = spy(scaled), spy(scaled)
    f = jaxcb.pure(result="x", vmap_method=outer)(first)
    g = jaxcb.pure(result="x", vmap_method=inner)(second)
    nest = [(0, 0), (0, 0)]
    arguments = nest_arguments(nest)
    returned_value = run(jax.jit(vmapped(lambda x, y: f(g(x, y), y), nest)), *arguments)
    twice = looped(lambda x, y: scaled(scaled(x, y), y), nest, SIZES, arguments)
    np.testing.assert_array_equal(returned_value, twice)
    one_by_one, at_once = 12 * [((2,), ())], [((3, 4, 2), (3, 4))]
    expected = {"sequential": one_by_one, "expand_dims": at_once}
    assert (shapes(firsts), shapes(seconds)) == (expected[outer], expected[inner])
