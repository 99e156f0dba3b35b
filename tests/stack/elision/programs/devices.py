"""Programs on several devices: shard_map, pmap and sharded jit.

test_devices.py runs this in a separate process, since the number of devices is fixed at startup.
It prints a line for each row that fails.
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
ROWS, row = table()


def sharded(f, specs=None):
    specs = specs or P("d")
    return jax.shard_map(f, mesh=MESH, in_specs=specs, out_specs=P("d"), check_vma=False)


@row("shard_map makes one call per device", {"a": "kept 4", "b": "kept 4", "c": "kept 4"})
def _(h):
    a, b, c = h.pure("a"), h.io("b"), h.debug("c")
    return jax.jit(sharded(lambda x: (c(x), a(x) + b(x))[1])), (XS,)


@row("an unused call in shard_map", {"a": "unused 0", "b": "kept 4"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return jax.jit(sharded(lambda x: (a(x), b(x))[1])), (XS,)


@row("an optimized-away call in shard_map", {"a": "optimized away 0", "b": "kept 4"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return jax.jit(sharded(lambda x: jnp.where(False, a(x), b(x)))), (XS,)


@row("an optimized-away integer call in shard_map", {"a": "optimized away 0"})
def _(h):
    a = h.pure("a")
    return jax.jit(sharded(lambda x: x + 0 * a(x))), (XS.astype(np.int32),)


@row("a scan in shard_map", {"a": "kept 12"})
def _(h):
    a = h.pure("a")
    f = lambda x: lax.scan(lambda c, _: (a(c), None), x, length=3)[0]  # noqa: E731
    return jax.jit(sharded(f)), (XS,)


@row("an invariant call in a scan in shard_map", {"a": "hoisted 4"})
def _(h):
    a = h.pure("a")
    f = lambda x: lax.scan(lambda c, _: (c + a(x), None), x, length=3)[0]  # noqa: E731
    return jax.jit(sharded(f)), (XS,)


@row("a branch that some devices take", {"a": "kept 1", "b": "kept 3"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return jax.jit(sharded(lambda x: lax.cond(x[0, 0] > 8, a, b, x))), (XS,)


@row("a branch that no device takes", {"a": "not reached 0", "b": "kept 4"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return jax.jit(sharded(lambda x: lax.cond(x[0, 0] > 99, a, b, x))), (XS,)


@row("an inner jit called twice in shard_map", {"a": "deduplicated 4"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return jax.jit(sharded(lambda x: g(x) - 2 * g(x))), (XS,)


@row("shard_map run twice", {"a": "kept 8", "b": "unused 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(sharded(lambda x: (b(x), a(x))[1]))
    jax.block_until_ready([f(XS), f(XS + 1)])


@row("a call on a replicated array", {"a": "kept 4"})
def _(h):
    a = h.pure("a")
    f = sharded(lambda x, k: x + a(k), (P("d"), P()))
    return jax.jit(f), (XS, XS[0])


@row("one call outside of shard_map and one inside", {"a": "kept 1", "b": "kept 4"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = sharded(b)
    return lambda x: a(f(x)), (XS,)


@row("shard_map compiled and not run", {"a": "not run 0"})
def _(h):
    a = h.pure("a")
    jax.jit(sharded(lambda x: a(x))).lower(XS).compile()


@row("shard_map outside of jit", {"a": "kept 4"})
def _(h):
    a = h.pure("a")
    jax.block_until_ready(sharded(lambda x: a(x))(jnp.asarray(XS)))


@row("pmap makes one call per device", {"a": "kept 4", "b": "kept 4", "c": "unused 0"})
def _(h):
    a, b, c = h.pure("a"), h.debug("b"), h.pure("c")
    jax.block_until_ready(jax.pmap(lambda x: (c(x), b(x), a(x))[2])(XS))


@row("pmap run three times", {"a": "kept 12", "b": "optimized away 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.pmap(lambda x: jnp.where(False, b(x), a(x)))
    for _ in range(3):
        jax.block_until_ready(f(XS))


@row("pmap of a scan", {"a": "kept 12", "b": "hoisted 4"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = lambda x: lax.scan(lambda c, _: (a(c) + b(x), None), x, length=3)[0]  # noqa: E731
    jax.block_until_ready(jax.pmap(f)(XS))


@row("pmap on two of four devices", {"a": "kept 2"})
def _(h):
    a = h.pure("a")
    jax.block_until_ready(jax.pmap(lambda x: a(x))(XS[:2]))


@row(
    "jit over a sharded array makes one call",
    {"a": "kept 1", "b": "unused 0", "c": "optimized away 0"},
)
def _(h):
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
    x = jax.device_put(XS, NamedSharding(MESH, P("d")))
    return lambda x: (b(x), jnp.where(False, c(x), a(x)))[1], (x,)


@row("io over a sharded array makes one call", {"a": "kept 1"})
def _(h):
    a = h.io("a")
    x = jax.device_put(XS, NamedSharding(MESH, P("d")))
    return lambda x: a(x), (x,)


@row("one function on one device and on four", {"a": "kept 3"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: a(x))
    many = jax.device_put(XS, NamedSharding(MESH, P("d")))
    for x in (XS, many, XS):
        jax.block_until_ready(f(x))


@row("a scan over a sharded array", {"a": "kept 3"})
def _(h):
    a = h.pure("a")
    x = jax.device_put(XS, NamedSharding(MESH, P("d")))
    return lambda x: lax.scan(lambda c, _: (a(c), None), x, length=3)[0], (x,)


if __name__ == "__main__":
    for case in ROWS:
        try:
            check(case)
        except Exception as error:
            print(f"FAILED {case.name}: {type(error).__name__} {error}")
