"""Fail in a host function on one of two devices while the other waits in a collective.

test_poison.py runs this in a separate process, which never ends by itself.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack.errors import _causes

_causes.PATIENCE_SECONDS = 0.5


def reactor(x):
    if x[0] > 0:
        raise ValueError("no luck")
    return x


def summed(x):
    return jax.lax.psum(jaxcb.pure_callback(reactor, x, x), "d")


MESH = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
f = jax.shard_map(summed, mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False)
jax.block_until_ready(jax.jit(f)(jnp.arange(2.0)))
