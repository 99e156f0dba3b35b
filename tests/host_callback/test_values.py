"""Values that tap functions get and that taps return: numpy arrays, trees, weak types."""

import collections

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jupyter_jaxcb import host_callback as hcb
from tests.interface import empty_aligned

MODES = {"eager": lambda f: f, "jit": jax.jit}
eager_and_jit = pytest.mark.parametrize("around", MODES.values(), ids=MODES)
DTYPES = "bool_ int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 complex64".split()


@eager_and_jit
@pytest.mark.parametrize("dtype", DTYPES)
def test_array_is_passed_and_returned_unchanged(seen, around, dtype):
    given = np.arange(6).reshape(2, 3).astype(jnp.dtype(dtype))
    back = seen.of(around(lambda x: hcb.id_tap(seen, x)), jnp.asarray(given))
    ((arg, transforms, device),) = seen.calls
    assert type(arg) is np.ndarray
    assert arg.dtype == given.dtype
    np.testing.assert_array_equal(arg, given)
    assert isinstance(back, jax.Array)
    assert back.dtype == given.dtype
    np.testing.assert_array_equal(np.asarray(back), given)
    assert (transforms, device) == ((), {})


def test_writing_to_an_aligned_argument_afterwards_does_not_change_the_result(seen):
    given = empty_aligned((16,), np.dtype(np.float32))  # JAX may adopt such memory
    given[:] = 1
    back = seen.of(lambda x: hcb.id_tap(seen, x), given)
    given[:] = 7
    np.testing.assert_array_equal(np.asarray(back), np.ones(16, np.float32))


def test_four_bit_integers_have_the_dtype_of_ml_dtypes(seen):
    hcb.id_tap(seen, jnp.arange(-2, 3, dtype=jnp.int4))
    ((arg, _, _),) = seen.calls
    assert arg.dtype == np.dtype(ml_dtypes.int4)
    assert arg.astype(int).tolist() == [-2, -1, 0, 1, 2]


@eager_and_jit
@pytest.mark.parametrize(
    ("given", "dtype"),
    [(3, "int32"), (2.5, "float32"), (True, "bool"), (1j, "complex64"), (np.float64(2), "float32")],
)
def test_numbers_are_passed_as_0_dimensional_arrays(seen, around, given, dtype):
    seen.of(around(lambda: hcb.id_tap(seen, given)))
    ((arg, _, _),) = seen.calls
    assert type(arg) is np.ndarray
    assert (arg.shape, arg.dtype.name, arg == given) == ((), dtype, True)


@eager_and_jit
def test_64_bit_arrays_are_narrowed_without_x64(seen, around):
    back = seen.of(around(lambda: hcb.id_tap(seen, (np.arange(2), np.arange(2.0)))))
    ((arg, _, _),) = seen.calls
    assert [x.dtype.name for x in arg] == ["int32", "float32"]
    assert [x.dtype.name for x in back] == ["int32", "float32"]


@eager_and_jit
def test_64_bit_arrays_are_not_narrowed_with_x64(seen, around):
    with jax.enable_x64(True):
        seen.of(around(lambda x: hcb.id_tap(seen, x)), np.float64(0.1))
    ((arg, _, _),) = seen.calls
    assert (arg.dtype.name, float(arg)) == ("float64", 0.1)


@eager_and_jit
def test_key_is_passed_as_its_data_and_returned_as_a_key(seen, around):
    key = jax.random.key(7)
    back = seen.of(around(lambda k: hcb.id_tap(seen, k)), key)
    ((arg, _, _),) = seen.calls
    assert arg.dtype == np.uint32
    np.testing.assert_array_equal(arg, np.asarray(jax.random.key_data(key)))
    assert back.dtype == key.dtype


@eager_and_jit
def test_empty_array_keeps_its_shape(seen, around):
    back = seen.of(around(lambda x: hcb.id_tap(seen, x)), jnp.zeros((0, 3)))
    assert seen.calls[0][0].shape == back.shape == (0, 3)


Pair = collections.namedtuple("Pair", "a b")


@eager_and_jit
def test_tree_is_passed_and_returned_unchanged(seen, around):
    given = {"z": [1, (2.0, None)], "a": Pair(3, ())}
    back = seen.of(around(lambda: hcb.id_tap(seen, given)))
    assert seen.values == [given]
    assert isinstance(seen.calls[0][0]["a"], Pair)
    assert jax.tree.structure(back) == jax.tree.structure(given)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(back))


@eager_and_jit
@pytest.mark.parametrize("given", [(), [], {}, None, (None, [])], ids=repr)
def test_tree_without_leaves_makes_a_call(seen, around, given):
    assert seen.of(around(lambda: hcb.id_tap(seen, given))) == given
    assert seen.calls == [(given, (), {})]


@eager_and_jit
def test_weak_type_is_kept(seen, around):
    product = around(lambda x: x * hcb.id_tap(seen, 2.0))(jnp.bfloat16(3))
    assert (product.dtype.name, float(product)) == ("bfloat16", 6.0)
    strong = around(lambda x: x * hcb.id_tap(seen, np.float32(2)))(jnp.bfloat16(3))
    assert strong.dtype.name == "float32"


@eager_and_jit
def test_argument_is_read_only_and_may_be_kept(seen, around):
    f = around(lambda x: hcb.id_tap(seen, x))
    for number in range(20):
        jax.block_until_ready(f(jnp.full(1000, number)))
    hcb.barrier_wait()
    for number, (arg, _, _) in enumerate(seen.calls):
        assert not arg.flags.writeable
        assert set(arg.tolist()) == {number}


@eager_and_jit
def test_return_value_of_the_tap_function_is_ignored(around):
    for result in ("text", np.ones(3), None, object()):
        tapped = around(lambda x, result=result: hcb.id_tap(lambda a, t: result, x) + 1)(1.0)
        assert float(tapped) == 2.0
