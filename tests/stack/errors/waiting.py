"""Fail in a host function on one of two devices while the other waits in a collective.

test_poison.py runs this in a separate process, with the name of a program. It never ends by itself.
"""

import logging
import sys

import jax
import jax.numpy as jnp
from jax.experimental import io_callback
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from tests.interface import give_up_waiting_after

give_up_waiting_after(0.5)
logging.getLogger("jax").setLevel(logging.CRITICAL)  # as `equinox.error_if` does


def reactor(x):
    if x[-1] > 0:
        raise ValueError("no luck")
    return x


CALLS = {
    "ours": lambda x: jaxcb.pure_callback(reactor, x, x),
    "jax pure": lambda x: jax.pure_callback(reactor, x, x),
    "jax io": lambda x: io_callback(reactor, x, x),
}
MESH = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))


def main(name):
    call = CALLS[name.removesuffix(", jit")]
    if name.endswith(", jit"):  # one device calls for both
        x = jax.device_put(jnp.arange(4.0), NamedSharding(MESH, P("d")))
        program = jax.jit(lambda x: call(x).sum() + jnp.flip(x))
    else:
        x = jnp.arange(2.0)
        program = jax.jit(
            jax.shard_map(
                lambda x: jax.lax.psum(call(x), "d"),
                mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False,
            )
        )  # fmt: skip
    with jaxcb.observe_jax():
        jax.block_until_ready(program(x))


main(sys.argv[1])
