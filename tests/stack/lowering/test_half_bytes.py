"""Numbers of less than a byte pass unchanged, even if jaxlib loses the last number of a byte."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

DTYPES = ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17])
@pytest.mark.parametrize("name", DTYPES)
def test_arrays_of_every_length_pass_unchanged_in_both_directions(name, size):
    numbers = [0, 1, 1, 0, 1] if "2" in name else [1, 0, 7, 2, -8 if name == "int4" else 3]
    x = np.resize(numbers, size).astype(jnp.dtype(name))
    seen = []

    def host(x):
        seen.append(x)
        return x

    def both(x):
        y = jaxcb.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return y, jaxcb.io_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True)

    for result in jax.jit(both)(x):
        np.testing.assert_array_equal(np.asarray(result), x)
    jax.jit(lambda x: jaxcb.debug_callback(seen.append, x))(x)
    jax.effects_barrier()
    assert [got.dtype.name for got in seen] == [name] * 3
    for got in seen:
        np.testing.assert_array_equal(got, x)
