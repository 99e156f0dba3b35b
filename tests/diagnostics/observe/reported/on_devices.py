"""Return results of JAX's own callbacks from programs over two CPU devices while they are observed.

test_on_devices.py runs this in a separate process. It prints a JSON object: for each program, the
shards of its results, and the warnings as pairs of line and text.
"""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb

MESH = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))
EVERYWHERE = NamedSharding(MESH, P())
X = jax.device_put(jnp.arange(1.0, 5.0), NamedSharding(MESH, P("d")))


def host(x):
    return 2 * np.asarray(x)


def pure(x):
    return jax.pure_callback(host, x, x)


def io(x):
    return io_callback(host, x, x)


def debug(x):
    jax.debug.callback(host, x)
    return x


def ours(x):
    return jaxcb.pure_callback(host, x, x)


def two(x):
    return io(pure(x))


def over_batch(x):
    return jax.vmap(lambda e: jax.pure_callback(host, e, e, vmap_method="broadcast_all"))(x)


LEFT = {"pure": pure, "io": io, "over_batch": over_batch, "inner": lambda x: jax.jit(pure)(x)}
PROGRAMS = {
    **{name: jax.jit(f) for name, f in LEFT.items()},
    "two": jax.jit(two),
    "eager": pure,
    "eager io": io,
    "used": jax.jit(lambda x: pure(x) + 1),
    "with out_shardings": jax.jit(pure, out_shardings=EVERYWHERE),
    "constrained": jax.jit(lambda x: jax.lax.with_sharding_constraint(pure(x), EVERYWHERE)),
    "looped": jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, x: pure(x), x)),
    "debug": jax.jit(debug),
    "ours": jax.jit(ours),
    "one device": lambda x: jax.jit(pure)(np.asarray(x)),
}


def outcome(program):
    with warnings.catch_warnings(record=True) as caught, jaxcb.observe_jax():
        warnings.simplefilter("always")
        results = jax.tree.leaves(jax.block_until_ready(program(X)))
    shards = [[part.data.tolist() for part in y.addressable_shards] for y in results]
    return shards, [[one.lineno, str(one.message)] for one in caught]


if __name__ == "__main__":
    found = {name: outcome(program) for name, program in PROGRAMS.items()}
    lines = {"pure": pure.__code__.co_firstlineno + 1, "io": io.__code__.co_firstlineno + 1}
    print(json.dumps({"lines": lines, "found": found}))
