"""Values of every dtype reach the host and come back bit for bit, with their shape."""

import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import (
    FIVE_TO_2,
    SCALAR,
    assert_same_bits,
    eager_or_jit,
    like_first,
)

EXACT = {
    "bool": [True, False, True, True, False, False],
    "int8": [-128, 127, 0, -1, 5, 7],
    "int16": [-(2**15), 2**15 - 1, 0, -1, 5, 7],
    "int32": [-(2**31), 2**31 - 1, 0, -1, 5, 7],
    "uint8": [0, 255, 1, 2, 3, 4],
    "uint16": [0, 2**16 - 1, 1, 2, 3, 4],
    "uint32": [0, 2**32 - 1, 1, 2, 3, 4],
    "float16": [1 / 3, -0.0, np.inf, -np.inf, np.nan, 65504],
    "bfloat16": [1 / 3, -0.0, np.inf, -np.inf, np.nan, 3.3895e38],
    "float32": [1 / 3, -0.0, np.inf, -np.inf, np.nan, 3.4028235e38],
    "complex64": [1 / 3 + 2j, -0.0, np.inf, 1 - 5j, np.nan, 3.4028235e38j],
}
EXACT_64 = {
    "int64": [-(2**63), 2**63 - 1, 0, 2**40 + 7, 5, 7],
    "uint64": [0, 2**64 - 1, 1, 2**40 + 7, 3, 4],
    "float64": [1 / 3, -0.0, np.inf, -np.inf, np.nan, 1e300],
    "complex128": [1 / 3 + 2j, -0.0, np.inf, 1e300j, np.nan, 1 + 1e-15j],
}
extents = pytest.mark.parametrize("shape", [(), (2, 3)], ids=str)


def exact_array(dtype, numbers, shape):
    values = np.array(numbers, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return np.array(values[: math.prod(shape)].reshape(shape))


@pytest.mark.long
@extents
@pytest.mark.parametrize(("dtype", "numbers"), EXACT.items(), ids=EXACT)
def test_every_dtype_crosses_exactly_in_both_directions(pure, spy, run, dtype, numbers, shape):
    x = exact_array(dtype, numbers, shape)
    host, seen = spy(lambda x: np.array(x))
    f = pure(host, jax.ShapeDtypeStruct(x.shape, x.dtype))
    assert_same_bits(run(f, x), x)
    assert_same_bits(run(jax.jit(f), x), x)
    assert len(seen) == 2
    for (got,) in seen:
        assert_same_bits(got, x)


@extents
@pytest.mark.parametrize(("dtype", "numbers"), EXACT_64.items(), ids=EXACT_64)
def test_every_64_bit_dtype_crosses_exactly_in_an_x64_context(
    our_pure, spy, run, dtype, numbers, shape
):
    """The context applies to this thread only; the host function may run on another one."""
    x = exact_array(dtype, numbers, shape)
    host, seen = spy(lambda x: np.array(x))
    with jax.enable_x64(True):
        f = our_pure(host, jax.ShapeDtypeStruct(x.shape, x.dtype))
        assert_same_bits(run(f, x), x)
        assert_same_bits(run(jax.jit(f), x), x)
    assert len(seen) == 2
    for (got,) in seen:
        assert_same_bits(got, x)


@pytest.mark.parametrize("shape", [(0,), (2, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32", "complex64"])
def test_argument_of_size_0_keeps_its_shape(pure, spy, run, dtype, shape):
    """A second result of size 1 keeps XLA from removing the call."""
    x = np.zeros(shape, jnp.dtype(dtype))
    host, seen = spy(lambda x: (np.array(x), np.float32(x.size + 1)))
    f = pure(host, (jax.ShapeDtypeStruct(x.shape, x.dtype), SCALAR))
    for g in (f, jax.jit(f)):
        empty, one = run(g, x)
        assert_same_bits(empty, x)
        assert one == 1
    assert len(seen) == 2
    for (got,) in seen:
        assert_same_bits(got, x)


@eager_or_jit
@pytest.mark.parametrize(
    "result",
    [jax.ShapeDtypeStruct((0,), np.float32), (jax.ShapeDtypeStruct((2, 0), np.float32), ())],
    ids=str,
)
def test_callback_whose_results_have_size_0_is_not_called(pure, run, result, compiled):
    """Nothing can depend on the result, so XLA makes no call, eager or compiled."""
    seen = []

    def host(x):
        seen.append(x)
        return jax.tree.map(lambda declared: np.zeros(declared.shape, declared.dtype), result)

    returned_value = run(compiled(pure(host, result)), FIVE_TO_2)
    assert jax.tree.structure(returned_value) == jax.tree.structure(result)
    assert [a.shape for a in jax.tree.leaves(returned_value)] == [
        declared.shape for declared in jax.tree.leaves(result)
    ]
    assert seen == []


@eager_or_jit
@pytest.mark.parametrize("result", [None, ()], ids=str)
@pytest.mark.parametrize("pure_callback", [jax.pure_callback, jaxcb.pure_callback])
def test_drop_in_without_results_is_not_called(pure_callback, result, run, compiled):
    """The decorator refuses to register such a function."""
    seen = []
    call = compiled(lambda x: pure_callback(lambda x: seen.append(x) or result, result, x))
    assert run(call, FIVE_TO_2) == result
    assert seen == []


def test_64_bit_elements_survive_vmap_and_loops(our_pure, spy, run):
    """15 calls: 5 batch elements times 3 steps."""
    host, seen = spy(lambda x: x + np.int64(1))
    with jax.enable_x64(True):
        f = our_pure(host, like_first, vmap_method="sequential")

        def three_steps(x):
            return lax.scan(lambda c, _: (f(c), None), x, None, 3)[0]

        x = 2**40 + np.arange(5)
        returned_value = run(jax.jit(jax.vmap(three_steps)), x)
    assert_same_bits(returned_value, x + 3)
    assert len(seen) == 15
    assert {x.dtype.name for (x,) in seen} == {"int64"}


@pytest.mark.parametrize("numbers", [np.ones(3), np.arange(3), 1.0, 2], ids=repr)
def test_64_bit_arguments_arrive_as_jax_stores_them(pure, spy, run, numbers):
    """Without x64, JAX truncates them to 32 bits."""
    host, seen = spy(lambda x: x * 2)
    held = jnp.asarray(numbers)
    f = pure(host, jax.ShapeDtypeStruct(held.shape, held.dtype))
    assert_same_bits(run(f, numbers), np.asarray(held) * 2)
    ((got,),) = seen
    assert_same_bits(got, held)


def test_non_contiguous_arguments_arrive_in_logical_order(pure, spy, run):
    """Transposed, strided, Fortran-ordered and broadcast arrays."""
    host, seen = spy(lambda x: x * 2)
    f = pure(host, like_first)
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (
        base.T,
        base[::2, ::-3],
        np.asfortranarray(base),
        np.broadcast_to(base[0], (2, 6)),
    ):
        assert_same_bits(run(f, view), np.ascontiguousarray(view) * 2)
    assert_same_bits(run(jax.jit(lambda x: f(x.T)), base), np.ascontiguousarray(base.T) * 2)
    assert len(seen) == 5
