"""Values of every dtype that JAX has on CPUs reach the host and come back bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.conformance._every import our_returning_kinds, returning_kinds
from tests.conformance._parameters import SCALAR, X, assert_same_bits, eager_or_jit

FLOATS_OF_8_BITS = [name for name in dir(jnp) if name.startswith("float8_")]
# Until jaxlib 0.10.1, JAX's own callbacks garble 4-bit scalars and 2-bit values.
SUB_BYTE_IS_SOUND = jax.__version_info__ >= (0, 10, 2)
SUB_BYTE = ["int4", "uint4"]
if SUB_BYTE_IS_SOUND:
    SUB_BYTE += ["int2", "uint2", "float4_e2m1fn"]
PLAIN = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16"]
PLAIN += ["float32", "complex64"]
WIDE = ["int64", "uint64", "float64", "complex128"]
BEYOND_32_BITS = 1099511627783


def array_of(name):
    """Return six values of the dtype, as different as the dtype allows."""
    dtype = jnp.dtype(name)
    if name == "bool":
        return np.array([True, False, True, True, False, False])
    codes = np.random.default_rng(0).permutation(256)
    if name in SUB_BYTE:
        return np.array([0, 1, 1, 0, 1, 1 if name.startswith("u") else -1]).astype(dtype)
    if dtype.itemsize == 1:
        numbers = codes.astype(np.uint8).view(dtype)
        return numbers[~np.isnan(numbers.astype(np.float32))][:6]  # a NaN may change its bits
    return (codes[:6] * 1.25).astype(dtype)


def noting():
    """Return a host function that returns its argument, and the list it appends copies to."""
    seen = []

    def host(x):
        seen.append(np.array(x))
        return np.array(x)

    return host, seen


def test_list_of_8_bit_floats_includes_the_common_ones():
    assert {"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"} <= set(FLOATS_OF_8_BITS)


FEW = [*SUB_BYTE, "bool", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64"]


@pytest.mark.long
@returning_kinds
@pytest.mark.parametrize("name", FLOATS_OF_8_BITS + SUB_BYTE)
def test_small_dtypes_cross_exactly_in_both_directions(maker, run, name):
    x = array_of(name).reshape(2, 3)
    host, seen = noting()
    f = maker(host, jax.ShapeDtypeStruct(x.shape, x.dtype))
    assert_same_bits(run(f, x), x)
    assert_same_bits(run(jax.jit(f), x), x)
    assert len(seen) == 2
    for got in seen:
        assert_same_bits(got, x)


SCALARS = PLAIN + FLOATS_OF_8_BITS + (SUB_BYTE if SUB_BYTE_IS_SOUND else [])


@pytest.mark.long
@pytest.mark.parametrize("name", SCALARS)
def test_every_dtype_crosses_exactly_under_vmap(pure, run, name):
    x = array_of(name)
    host, seen = noting()
    f = pure(host, jax.ShapeDtypeStruct((), x.dtype), vmap_method="sequential")
    assert_same_bits(run(jax.jit(jax.vmap(f)), x), x)
    assert_same_bits(np.stack(seen), x)


@pytest.mark.long
@eager_or_jit
@pytest.mark.parametrize("name", FEW)
def test_small_dtypes_reach_a_debug_callback_exactly(debug, run, name, compiled):
    x = array_of(name)
    host, seen = noting()
    f = debug(host)
    run(compiled(lambda x: f(x)), x)
    (got,) = seen
    assert_same_bits(got, x)


@our_returning_kinds
@pytest.mark.parametrize("name", ["int4", "uint4", "float8_e5m2"])
def test_result_of_a_small_dtype_may_have_any_memory_layout(maker, run, name):
    """Fortran order, negative strides, a transpose and a slice."""
    base = np.concatenate([array_of(name), array_of(name)[::-1]]).reshape(3, 4)
    for result in (np.asfortranarray(base), base[::-1, ::-2], base.T, base[1:, :1]):
        f = maker(lambda x, result=result: result, jax.ShapeDtypeStruct(result.shape, base.dtype))
        for g in (f, jax.jit(f)):
            assert_same_bits(run(g, X), np.ascontiguousarray(result))


@pytest.mark.long
@returning_kinds
@pytest.mark.parametrize("name", FEW)
def test_array_of_size_0_keeps_its_shape_and_dtype(maker, run, name):
    empty = np.zeros((2, 0, 3), jnp.dtype(name))
    seen = []

    def host(x):
        seen.append(np.asarray(x))
        return np.asarray(x), np.float32(1)

    f = maker(host, (jax.ShapeDtypeStruct(empty.shape, empty.dtype), SCALAR))
    for g in (f, jax.jit(f)):
        got, one = run(g, empty)
        assert_same_bits(got, empty)
        assert one == 1
    assert [(x.shape, x.dtype) for x in seen] == 2 * [(empty.shape, empty.dtype)]


# 64 bits


@our_returning_kinds
@pytest.mark.parametrize("name", WIDE)
def test_x64_context_holds_for_forty_calls(maker, run, name):
    """The calls may run on other threads, which are not in the context."""
    host, seen = noting()
    with jax.enable_x64(True):
        like = jax.ShapeDtypeStruct((200,), jnp.dtype(name))
        f = jax.jit(lambda x, i: maker(host, like)(x + i))
        x = jnp.full((200,), BEYOND_32_BITS, name)
        results = [f(x, jnp.asarray(i, name)) for i in range(40)]
        for i, result in enumerate(results):
            assert_same_bits(result, np.full((200,), BEYOND_32_BITS + i, name))
        run(lambda: results)
    assert sorted(int(got.real.flat[0]) for got in seen) == [BEYOND_32_BITS + i for i in range(40)]
    assert {got.dtype.name for got in seen} == {name}


def test_x64_context_holds_for_forty_debug_calls(our_debug, run):
    seen = []
    f = our_debug(lambda x: seen.append((x.dtype.name, int(x))))
    with jax.enable_x64(True):
        program = jax.jit(lambda x: f(x))
        for i in range(40):
            program(np.int64(BEYOND_32_BITS + i))
        run(lambda: None)
    assert sorted(seen) == [("int64", BEYOND_32_BITS + i) for i in range(40)]


@pytest.mark.parametrize("name", WIDE)
def test_each_run_uses_the_x64_setting_in_force(our_pure, run, name):
    host, seen = noting()

    def double(x):
        return our_pure(host, jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)))(x + x)

    f = jax.jit(double)
    x = np.array(BEYOND_32_BITS % 2**30, name)
    for on in (True, False, True):
        with jax.enable_x64(on):
            expected = np.asarray(jnp.asarray(x) * 2)
            assert_same_bits(run(f, x), expected)
            assert_same_bits(seen.pop(), expected)


# PRNG keys


@returning_kinds
def test_prng_key_arrives_as_its_key_data(maker, run):
    host, seen = noting()
    key = jax.random.key(7)
    f = maker(lambda x: host(x).sum().astype(np.float32), SCALAR)
    for g in (f, jax.jit(f)):
        run(g, key)
    for got in seen:
        assert_same_bits(got, jax.random.key_data(key))
    assert len(seen) == 2


@returning_kinds
def test_declaring_a_prng_key_as_the_result_is_a_type_error_when_called(maker):
    host, seen = noting()
    key = jax.random.key(0)
    with pytest.raises(TypeError, match="key<fry>"):
        jax.make_jaxpr(maker(host, key))(X)
    assert seen == []
