"""What the host function gets, and what comes back: numpy arrays, one tree, weak types kept."""

import collections

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jupyter_jaxcb import host_callback as hcb
from jupyter_jaxcb.stack.core import empty_aligned

WAYS = {"eager": lambda f: f, "jit": jax.jit}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
DTYPES = "bool_ int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 complex64".split()


@ways
@pytest.mark.parametrize("dtype", DTYPES)
def test_array_arrives_and_comes_back_as_it_is(seen, way, dtype):
    given = np.arange(6).reshape(2, 3).astype(jnp.dtype(dtype))
    back = seen.of(way(lambda x: hcb.id_tap(seen, x)), jnp.asarray(given))
    ((arg, transforms, device),) = seen.calls
    assert type(arg) is np.ndarray
    assert arg.dtype == given.dtype
    np.testing.assert_array_equal(arg, given)
    assert isinstance(back, jax.Array)
    assert back.dtype == given.dtype
    np.testing.assert_array_equal(np.asarray(back), given)
    assert (transforms, device) == ((), {})


def test_array_that_is_written_into_afterwards_leaves_what_came_back(seen):
    given = empty_aligned((16,), np.dtype(np.float32))  # JAX may take such memory over
    given[:] = 1
    back = seen.of(lambda x: hcb.id_tap(seen, x), given)
    given[:] = 7
    np.testing.assert_array_equal(np.asarray(back), np.ones(16, np.float32))


def test_four_bit_integers_are_those_of_ml_dtypes(seen):
    """Eagerly: JAX 0.8.0 garbles them on their way to a compiled callback, its own ones too."""
    hcb.id_tap(seen, jnp.arange(-2, 3, dtype=jnp.int4))
    ((arg, _, _),) = seen.calls
    assert arg.dtype == np.dtype(ml_dtypes.int4)
    assert arg.astype(int).tolist() == [-2, -1, 0, 1, 2]


@ways
@pytest.mark.parametrize(
    ("given", "dtype"),
    [(3, "int32"), (2.5, "float32"), (True, "bool"), (1j, "complex64"), (np.float64(2), "float32")],
)
def test_numbers_arrive_as_arrays_without_dimensions(seen, way, given, dtype):
    seen.of(way(lambda: hcb.id_tap(seen, given)))
    ((arg, _, _),) = seen.calls
    assert type(arg) is np.ndarray
    assert (arg.shape, arg.dtype.name, arg == given) == ((), dtype, True)


@ways
def test_64_bit_arrays_are_narrowed_without_x64(seen, way):
    back = seen.of(way(lambda: hcb.id_tap(seen, (np.arange(2), np.arange(2.0)))))
    ((arg, _, _),) = seen.calls
    assert [x.dtype.name for x in arg] == ["int32", "float32"]
    assert [x.dtype.name for x in back] == ["int32", "float32"]


@ways
def test_64_bit_arrays_stay_with_x64(seen, way):
    with jax.enable_x64(True):
        seen.of(way(lambda x: hcb.id_tap(seen, x)), np.float64(0.1))
    ((arg, _, _),) = seen.calls
    assert (arg.dtype.name, float(arg)) == ("float64", 0.1)


@ways
def test_key_arrives_as_its_data_and_comes_back_as_a_key(seen, way):
    key = jax.random.key(7)
    back = seen.of(way(lambda k: hcb.id_tap(seen, k)), key)
    ((arg, _, _),) = seen.calls
    assert arg.dtype == np.uint32
    np.testing.assert_array_equal(arg, np.asarray(jax.random.key_data(key)))
    assert back.dtype == key.dtype


@ways
def test_empty_array_keeps_its_shape(seen, way):
    back = seen.of(way(lambda x: hcb.id_tap(seen, x)), jnp.zeros((0, 3)))
    assert seen.calls[0][0].shape == back.shape == (0, 3)


Pair = collections.namedtuple("Pair", "a b")


@ways
def test_tree_arrives_and_comes_back_as_it_is(seen, way):
    given = {"z": [1, (2.0, None)], "a": Pair(3, ())}
    back = seen.of(way(lambda: hcb.id_tap(seen, given)))
    assert seen.values == [given]
    assert isinstance(seen.calls[0][0]["a"], Pair)
    assert jax.tree.structure(back) == jax.tree.structure(given)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(back))


@ways
@pytest.mark.parametrize("given", [(), [], {}, None, (None, [])], ids=repr)
def test_tree_without_leaves_makes_a_call(seen, way, given):
    assert seen.of(way(lambda: hcb.id_tap(seen, given))) == given
    assert seen.calls == [(given, (), {})]


@ways
def test_weak_type_is_kept(seen, way):
    product = way(lambda x: x * hcb.id_tap(seen, 2.0))(jnp.bfloat16(3))
    assert (product.dtype.name, float(product)) == ("bfloat16", 6.0)
    strong = way(lambda x: x * hcb.id_tap(seen, np.float32(2)))(jnp.bfloat16(3))
    assert strong.dtype.name == "float32"


@ways
def test_argument_is_read_only_and_may_be_kept(seen, way):
    f = way(lambda x: hcb.id_tap(seen, x))
    for number in range(20):
        jax.block_until_ready(f(jnp.full(1000, number)))
    hcb.barrier_wait()
    for number, (arg, _, _) in enumerate(seen.calls):
        assert not arg.flags.writeable
        assert set(arg.tolist()) == {number}


@ways
def test_what_the_function_returns_is_ignored(way):
    for result in ("text", np.ones(3), None, object()):
        tapped = way(lambda x, result=result: hcb.id_tap(lambda a, t: result, x) + 1)(1.0)
        assert float(tapped) == 2.0


@ways
def test_numpy_array_may_be_written_to_afterwards(seen, way):
    given = np.zeros(3, np.float32)
    back = seen.of(way(lambda x: hcb.id_tap(seen, x)), given)
    given[:] = 1
    assert seen.values == [[0, 0, 0]]
    assert np.asarray(back).tolist() == [0, 0, 0]
