"""Under vmap a tap makes one call with the whole batch and reports the vmap in `transforms`."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jupyter_jaxcb import host_callback as hcb

from .conftest import batch


def test_vmap_is_one_call_with_the_whole_batch(seen):
    back = seen.of(jax.vmap(lambda x: hcb.id_tap(seen, x) * 2), jnp.arange(3.0))
    assert back.tolist() == [0, 2, 4]
    assert seen.values == [[0, 1, 2]]
    assert seen.transforms == [(batch(0),)]
    ((name, params),) = seen.transforms[0]
    assert (type(seen.transforms[0]), name, type(params)) == (tuple, "batch", dict)


def test_batch_axis_is_not_moved_and_unbatched_leaves_are_not_broadcast(seen):
    given = np.arange(24.0).reshape(2, 3, 4)
    f = jax.vmap(lambda x, y, z: hcb.id_tap(seen, {"b": x, "a": (y, z)}), in_axes=(1, None, 0))
    back = seen.of(f, given, np.arange(5.0), np.arange(3))
    ((arg, transforms, _),) = seen.calls
    assert arg["b"].shape == (2, 3, 4)
    assert arg["a"][0].shape == (5,)
    np.testing.assert_array_equal(arg["b"], given)
    assert transforms == (batch(None, 0, 1),)  # leaves are flattened with sorted keys
    np.testing.assert_array_equal(back["b"], np.moveaxis(given, 1, 0))


def test_nested_vmaps_are_reported_innermost_first(seen):
    """Each `batch_dims` indexes the array as its vmap saw it, without the axes of outer vmaps."""
    inner = jax.vmap(lambda x: hcb.id_tap(seen, x), in_axes=1, out_axes=1)
    given = np.arange(24).reshape(2, 3, 4)
    back = seen.of(jax.vmap(inner, in_axes=2, out_axes=2), given)
    assert seen.transforms == [(batch(1), batch(2))]
    np.testing.assert_array_equal(seen.calls[0][0], given)
    np.testing.assert_array_equal(back, given)


def test_vmaps_over_different_arguments(seen):
    f = jax.vmap(
        jax.vmap(lambda x, y: hcb.id_tap(seen, (x, y)), in_axes=(None, 0)), in_axes=(0, None)
    )
    seen.of(f, np.arange(2), np.arange(3))
    assert seen.values == [([0, 1], [0, 1, 2])]
    assert seen.transforms == [(batch(None, 0), batch(0, None))]


@pytest.mark.parametrize("given", [7, None, ()], ids=repr)
def test_unbatched_argument_makes_one_call_without_transforms(seen, given):
    back = seen.of(jax.vmap(lambda x: (hcb.id_tap(seen, given), x)[1]), np.arange(3))
    assert back.tolist() == [0, 1, 2]
    assert (seen.values, seen.transforms) == ([given], [()])


def test_vmap_with_only_an_axis_size_adds_no_transform(seen):
    seen.of(jax.vmap(lambda: hcb.id_tap(seen, 1), axis_size=4))
    assert (seen.values, seen.transforms) == ([1], [()])


def test_batch_of_size_0_makes_one_call(seen):
    seen.of(jax.vmap(lambda x: hcb.id_tap(seen, x)), np.zeros((0, 3), np.float32))
    assert seen.calls[0][0].shape == (0, 3)
    assert seen.transforms == [(batch(0),)]


def test_results_of_collectives_over_the_axis_are_tapped(seen):
    f = jax.vmap(lambda x: hcb.id_tap(seen, lax.psum(hcb.id_tap(seen, x), "i")), axis_name="i")
    assert seen.of(f, np.arange(3)).tolist() == [3, 3, 3]
    assert seen.values == [[0, 1, 2], 3]
    assert seen.transforms == [(batch(0),), ()]


@pytest.mark.parametrize(
    "other", [jax.jit, jax.checkpoint, lambda f: lambda x: lax.map(f, x[None])]
)
def test_only_vmap_and_transpose_add_transforms(seen, other):
    seen.of(other(lambda x: hcb.id_tap(seen, x)), jnp.float32(1))
    assert seen.transforms == [()]


@st.composite
def nests(draw):
    """Draw a shape and, outermost first, the axis each vmap takes of the remaining axes."""
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    count = draw(st.integers(1, len(shape)))
    return shape, [draw(st.integers(-(len(shape) - n), len(shape) - n - 1)) for n in range(count)]


@hypothesis.settings(max_examples=25)
@hypothesis.given(nests())
def test_indexing_the_reported_dimensions_gives_one_element(nest):
    """The test indexes the reported dimensions outermost first."""
    shape, axes = nest
    given = np.arange(np.prod(shape)).reshape(shape)
    calls = []
    f = lambda x: hcb.id_tap(lambda *call: calls.append(call), x)  # noqa: E731
    for axis in reversed(axes):
        f = jax.vmap(f, in_axes=axis, out_axes=0)
    back = np.asarray(jax.block_until_ready(jax.jit(f)(given)))
    ((arg, transforms),) = calls
    np.testing.assert_array_equal(arg, given)
    for name, params in reversed(transforms):
        assert name == "batch"
        (dim,) = params["batch_dims"]
        assert dim >= 0
        arg, back = arg.take(0, dim), back[0]
    np.testing.assert_array_equal(arg, back)
