"""Make masked calls on four CPU devices; print their results and the arguments of the calls."""

import json

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb


def main():
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("d")))
    seen = []
    f = jaxcb.io(lambda x: (seen.append(float(x)), 10 * x)[1], result="x")

    def write(out, x):
        seen.append(float(x))
        out[...] = 10 * x

    g = jaxcb.buffer(write, result="x")
    log = jaxcb.debug(lambda x: seen.append(float(x)), partitioned=True)

    def call(x, f=f):
        return f.where(x % 3 == 0, x, otherwise=-x)

    def written(x):
        return call(x, g)

    def show(x):
        log.where(x[0] % 3 == 0, x[0])
        return x

    def sharded(f):
        return jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)

    programs = {
        "jit": lambda: jax.jit(jax.vmap(call))(x),
        "shard_map": lambda: jax.jit(sharded(jax.vmap(call)))(x),
        "pmap": lambda: jax.pmap(jax.vmap(call))(jnp.arange(8.0).reshape(4, 2)).ravel(),
        "eager": lambda: jax.vmap(call)(x),
        "buffer in shard_map": lambda: jax.jit(sharded(jax.vmap(written)))(x),
        "buffer in jit": lambda: jax.jit(jax.vmap(written))(x),
        "buffer, eager": lambda: jax.vmap(written)(x),
        "partitioned": lambda: jax.jit(sharded(show))(x),
    }
    found = {}
    for name, program in programs.items():
        seen.clear()
        with jaxcb.record() as r:
            results = [float(y) for y in program()]
            jax.effects_barrier()
        counts = [sum(getattr(m, k) for m in r.recording.masks) for k in ("elements", "needed")]
        found[name] = {"results": results, "seen": sorted(seen), "counts": counts}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
