"""Record calls on four CPU devices, and print the shard of each call.

test_shards.py runs this in a separate process. It prints a JSON object: for each way to run on
several devices, the shards and first numbers of the arguments, and the gathered bytes.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize


def main():
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("d")))

    def sharded(f):
        return jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)

    found = {}
    for flavor in ("pure", "io", "debug", "partitioned", "io for a batch", "debug for a batch"):
        seen = []
        method = "expand_dims" if "batch" in flavor else "sequential"

        def host(x, seen=seen):
            seen.append(float(np.ravel(x)[0]))
            return x

        def call(x, host=host, flavor=flavor, method=method):
            if flavor.startswith("io"):
                return jaxcb.io_callback(host, x, x, vmap_method=method)
            if flavor == "pure":
                return jaxcb.pure_callback(host, x, x, vmap_method=method)
            partitioned = flavor == "partitioned"
            jaxcb.debug_callback(host, x, partitioned=partitioned, vmap_method=method)
            return x

        programs = {
            "shard_map": lambda: jax.jit(sharded(call))(x),
            "shard_map of vmap": lambda: jax.jit(sharded(jax.vmap(call)))(x),
            "pmap": lambda: jax.pmap(call)(np.arange(8.0, dtype=np.float32).reshape(4, 2)),
            "jit": lambda: jax.jit(lambda x: call(x) + 1)(x),
            "jit of vmap": lambda: jax.jit(jax.vmap(lambda x: call(x) + 1))(x),
        }
        for name, program in programs.items():
            seen.clear()
            with jaxcb.record() as r:
                jax.block_until_ready(program())
            facts = [r.recording.lowered[called.lowered] for called in r.recording]
            (summary,) = summarize(r.recording)
            found[f"{flavor}: {name}"] = {
                "shards": [fact.shard for fact in facts],
                "first": seen[:],
                "devices": sorted({fact.devices for fact in facts}),
                "gathered": sorted({fact.gathered_bytes for fact in facts}),
                "expected": summary.expected,
                "compiled": [outcome.compiled for outcome in r.recording.outcomes],
            }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
