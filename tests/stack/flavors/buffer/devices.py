"""Call buffer callbacks from two CPU devices, and print their calls as a JSON object.

test_devices.py runs this in a separate process.
"""

import json

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize


def main():
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, P("d")))
    seen = []

    def host(context, out, x):
        seen.append(x.tolist())
        out[...] = x + 1

    def in_place(context, out, x):
        seen.append(x.tolist())
        out += 1

    def fails(context, out, x):
        raise ValueError("no luck")

    def call(x, host=host, **options):
        return jaxcb.buffer_callback(host, x, vmap_method="sequential", **options)(x)

    def sharded(f):
        return jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)

    programs = {
        "jit": lambda: jax.jit(call)(x),
        "shard_map": lambda: jax.jit(sharded(call))(x),
        "shard_map of vmap": lambda: jax.jit(sharded(jax.vmap(call)))(x),
        "shard_map with a side effect": lambda: jax.jit(
            sharded(lambda x: call(x, has_side_effect=True))
        )(x),
        "shard_map with an alias": lambda: jax.jit(
            sharded(lambda x: call(x, in_place, input_output_aliases={0: 0}))
        )(x),
        "pmap": lambda: jax.pmap(call)(jnp.arange(4.0).reshape(2, 2)),
        "eager": lambda: call(x),
    }
    found = {}
    for name, program in programs.items():
        seen.clear()
        with jaxcb.record() as r:
            result = jax.block_until_ready(program())
        facts = [r.recording.lowered[made.lowered] for made in r.recording]
        (summary,) = summarize(r.recording)
        found[name] = {
            "seen": sorted(seen),
            "result": result.ravel().tolist(),
            "shards": sorted(str(fact.shard) for fact in facts),
            "expected": summary.expected,
            "calls": summary.calls,
            "compiled": [outcome.compiled for outcome in r.recording.outcomes],
        }
    for name, program in {
        "jit with a side effect": lambda: jax.jit(lambda x: call(x, has_side_effect=True))(x),
        "jit that fails": lambda: jax.jit(lambda x: call(x, fails))(x),
        "shard_map that fails": lambda: jax.jit(sharded(lambda x: call(x, fails)))(x),
    }.items():
        try:
            jax.block_until_ready(program())
        except Exception as error:
            original = jaxcb.host_error(error)
            found[name] = [type(error).__name__, str(error), repr(original)]
    found["after"] = jax.jit(lambda x: x + 1)(x).tolist()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
