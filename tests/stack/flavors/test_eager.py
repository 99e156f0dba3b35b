"""Outside of any transformation, the host function is called directly: nothing is compiled."""

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb


def test_operands_are_read_only_and_never_change():
    kept = []
    mine = np.arange(3.0, dtype=np.float32)
    for call in (jaxcb.pure_callback, jax.jit(jaxcb.pure_callback, static_argnums=(0, 1))):
        call(lambda x: kept.append(x) or x, jax.ShapeDtypeStruct((3,), np.float32), mine)
    mine[:] = 7
    assert len(kept) == 2
    for x in kept:
        assert type(x) is np.ndarray and not x.flags.writeable
        assert x.tolist() == [0, 1, 2]


def test_host_function_may_write_into_its_result_later():
    # Large and aligned: JAX uses the memory of such an array instead of copying it.
    raw = np.zeros(100_016, np.float32)
    buffer = raw[-raw.ctypes.data % 64 // 4 :][:100_000]

    def host(x):
        buffer[:] = x
        return buffer

    struct = jax.ShapeDtypeStruct((100_000,), np.float32)
    calls = [lambda x: jaxcb.pure_callback(host, struct, x)]
    calls.append(jax.jit(calls[0]))
    for f in calls:
        first = f(jnp.ones(()))
        f(jnp.zeros(()))
        assert (first == 1).all()
