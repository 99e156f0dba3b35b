"""Run JAX's callbacks and ours in programs on four CPU devices, and print the host arguments.

Run by test_38968_shards.py in a separate process, because JAX fixes the number of devices at the
start. Prints a JSON object: for each callback and program, the arguments of the host calls, and
the error or null.
"""

import json


def main():
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import io_callback
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    import jupyter_jaxcb as jaxcb

    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("d")))
    like_x = jax.ShapeDtypeStruct((), np.float32)

    def io_of(io_callback):
        return lambda host, x, **options: io_callback(host, None, x, **options)

    def pure_of(pure_callback):
        def call(host, x):
            return pure_callback(lambda x: host(x) or np.float32(0), like_x, x)

        return call

    callbacks = {
        "theirs": {
            "debug": jax.debug.callback,
            "io": io_of(io_callback),
            "pure": pure_of(jax.pure_callback),
        },
        "ours": {
            "debug": jaxcb.debug_callback,
            "io": io_of(jaxcb.io_callback),
            "pure": pure_of(jaxcb.pure_callback),
        },
    }

    def jit(call):
        return jax.jit(lambda x: (call(x), x)[::-1])

    def shard_map(call):
        def body(x):
            result = call(x)
            return x if result is None else x + result

        return jax.jit(
            jax.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)
        )

    def observe(program, callback, **options):
        seen = []

        def host(x):
            seen.append(np.asarray(x).tolist())

        try:
            jax.block_until_ready(program(lambda x: callback(host, x, **options))(x))
            jax.effects_barrier()
        except Exception as error:
            return sorted(seen), f"{type(error).__name__}: {error}"
        return sorted(seen), None

    found = {}
    for whose, flavors in callbacks.items():
        for flavor, callback in flavors.items():
            for program in (jit, shard_map):
                found[f"{whose}: {flavor}, {program.__name__}"] = observe(program, callback)
        for program in (jit, shard_map):
            found[f"{whose}: ordered debug, {program.__name__}"] = observe(
                program, flavors["debug"], ordered=True
            )
        found[f"{whose}: partitioned debug, jit"] = observe(jit, flavors["debug"], partitioned=True)
    with jaxcb.record() as r:
        for program in (jit, shard_map):
            observe(program, jaxcb.debug_callback)
    found["recorded"] = [
        [str(aval) for aval in r.recording.lowered[call.lowered].operands] for call in r.recording
    ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
