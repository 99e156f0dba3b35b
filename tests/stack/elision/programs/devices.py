"""Programs on several devices: shard_map, pmap and sharded jit.

test_all_calls_made.py runs this in a separate process, since the number of devices is fixed at
startup. It prints a line for each row that fails.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.stack.elision._battery import check, table

AUTO = jax.sharding.AxisType.Auto
MESH = jax.make_mesh((4,), ("d",), axis_types=(AUTO,))
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
SPLIT = jax.device_put(XS, NamedSharding(MESH, P("d")))
ROWS, row = table(XS)


def sharded(f, specs=None):
    specs = specs or P("d")
    return jax.shard_map(f, mesh=MESH, in_specs=specs, out_specs=P("d"), check_vma=False)


def scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0]


@row("shard_map makes one call per device", "a kept 4, b kept 4, c kept 4")
def _(h, a):
    b, c = h.io("b"), h.debug("c")
    return sharded(lambda x: (c(x), a(x) + b(x))[1])


row("an unused call in shard_map", "a unused 0, b kept 4")(
    lambda a, b: sharded(lambda x: (a(x), b(x))[1])
)
row("an optimized-away call in shard_map", "a optimized away 0, b kept 4")(
    lambda a, b: sharded(lambda x: jnp.where(False, a(x), b(x)))
)
row("an optimized-away integer call in shard_map", "a optimized away 0")(
    lambda a: (sharded(lambda x: x + 0 * a(x)), (XS.astype(np.int32),))
)
row("a scan in shard_map", "a kept 12, b hoisted 4")(
    lambda a, b: sharded(lambda x: scan(lambda c: a(c) + b(x))(x))
)
row("a branch that some devices take", "a kept 1, b kept 3")(
    lambda a, b: sharded(lambda x: lax.cond(x[0, 0] > 8, a, b, x))
)
row("a branch that no device takes", "a not reached 0, b kept 4")(
    lambda a, b: sharded(lambda x: lax.cond(x[0, 0] > 99, a, b, x))
)
row("a call on a replicated array", "a kept 4")(
    lambda a: (sharded(lambda x, k: x + a(k), (P("d"), P())), (XS, XS[0]))
)
row("one call outside of shard_map and one inside", "a kept 1, b kept 4")(
    lambda a, b: lambda x: a(sharded(b)(x))
)


@row("an inner jit called twice in shard_map", "a deduplicated 4")
def _(a):
    g = jax.jit(lambda x: a(x))
    return sharded(lambda x: g(x) - 2 * g(x))


@row("shard_map run twice", "a kept 8, b unused 0", ran=True)
def _(a, b):
    f = jax.jit(sharded(lambda x: (b(x), a(x))[1]))
    jax.block_until_ready([f(XS), f(XS + 1)])


@row("shard_map compiled and not run", "a not run 0", ran=True)
def _(a):
    jax.jit(sharded(lambda x: a(x))).lower(XS).compile()


@row("shard_map outside of jit", "a kept 4", ran=True)
def _(a):
    jax.block_until_ready(sharded(lambda x: a(x))(jnp.asarray(XS)))


@row("pmap run twice", "a kept 8, b kept 8, c unused 0, d optimized away 0", ran=True)
def _(h, a, c, d):
    b = h.debug("b")
    f = jax.pmap(lambda x: (c(x), b(x), jnp.where(False, d(x), a(x)))[2])
    jax.block_until_ready([f(XS), f(XS)])


@row("pmap of a scan", "a kept 12, b hoisted 4", ran=True)
def _(a, b):
    jax.block_until_ready(jax.pmap(lambda x: scan(lambda c: a(c) + b(x))(x))(XS))


@row("pmap on two of four devices", "a kept 2", ran=True)
def _(a):
    jax.block_until_ready(jax.pmap(lambda x: a(x))(XS[:2]))


row("jit over a sharded array makes one call", "a kept 1, b unused 0, c optimized away 0")(
    lambda a, b, c: (lambda x: (b(x), jnp.where(False, c(x), a(x)))[1], (SPLIT,))
)
row("io over a sharded array makes one call", "a kept 1")(lambda h: (h.io("a"), (SPLIT,)))
row("a scan over a sharded array", "a kept 3")(lambda a: (scan(a), (SPLIT,)))


@row("one function on one device and on four", "a kept 3", ran=True)
def _(a):
    f = jax.jit(lambda x: a(x))
    for x in (XS, SPLIT, XS):
        jax.block_until_ready(f(x))


if __name__ == "__main__":
    for case in ROWS:
        try:
            check(case)
        except Exception as error:
            print(f"FAILED {case.name}: {type(error).__name__} {error}")
