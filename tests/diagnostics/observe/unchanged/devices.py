"""Compare JAX's callbacks on four devices, observed and not: same calls, same results.

Run by test_devices.py in a separate process, because JAX fixes the number of devices at the start.
Prints one line per program: its name, and "same" or the difference.
"""

import jax

COMPILED = ("pure", "io", "ordered io", "our own partitioned")  # even in shard_map without jit


# The callbacks that work in a partly manual shard_map. JAX refuses the others.
PARTLY = ("debug", "partitioned", "print")


def main():
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import io_callback
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    import jupyter_jaxcb as jaxcb

    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("d")))
    given = []

    def host(x):
        given.append(np.asarray(x).tolist())
        return np.float32(1)

    scalar = jax.ShapeDtypeStruct((), np.float32)

    def look(x):
        host(x)

    callbacks = {
        "pure": lambda x: jax.pure_callback(host, scalar, x),
        "io": lambda x: io_callback(host, scalar, x),
        "ordered io": lambda x: io_callback(host, scalar, x, ordered=True),
        "debug": lambda x: (jax.debug.callback(look, x), jnp.float32(1))[1],
        "partitioned": lambda x: (jax.debug.callback(look, x, partitioned=True), jnp.float32(1))[1],
        "our own partitioned": lambda x: (
            jaxcb.debug_callback(look, x, partitioned=True),
            jnp.float32(1),
        )[1],
        "print": lambda x: (jax.debug.print("{}", x), jnp.float32(1))[1],
    }

    def sharded(f):
        return jax.shard_map(lambda x: f(x)[None], mesh=mesh, in_specs=P("d"), out_specs=P("d"))

    halves = jax.make_mesh((2, 2), ("d", "rest"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def partly(f):
        return jax.shard_map(
            lambda x: f(x)[None], mesh=halves, in_specs=P("d"), out_specs=P("d"), axis_names={"d"},
            check_vma=False,
        )  # fmt: skip

    programs = {
        "jit": lambda f: jax.jit(f),
        "shard_map": lambda f: jax.jit(sharded(f)),
        "shard_map without jit": sharded,
        "partly manual": lambda f: jax.jit(partly(f)),
    }
    for name, bind in callbacks.items():
        for kind, around in programs.items():
            if kind == "partly manual" and name not in PARTLY:
                continue

            def run():
                given.clear()
                jax.clear_caches()
                try:
                    result = around(lambda x: 2 * bind(x))(x)  # noqa: B023
                    result = np.asarray(result).tolist()
                    jax.effects_barrier()
                except Exception as error:
                    result = type(error).__name__, str(error).splitlines()[0]
                return result, sorted(map(str, given))

            plain = run()
            with jaxcb.observe_jax() as r:
                observed = run()
            calls = len(plain[1])
            if name == "print":
                calls = {"jit": 1, "partly manual": 2}.get(kind, 4)
            statuses = [(str(o.status), o.compiled, o.written) for o in r.recording.outcomes]
            expected = [("kept", calls, calls)] * bool(calls)
            if kind == "partly manual":  # one device of each group calls, under a cond
                expected = [("kept", None, calls)] * bool(calls)
            if kind == "shard_map without jit" and name not in COMPILED:
                expected = []
            same = plain == observed and len(r.recording) == calls and statuses == expected
            found = [plain, observed, len(r.recording), statuses]
            print(name, kind, "same" if same else f"FAILED {found}")


if __name__ == "__main__":
    main()
