"""Run JAX's callbacks and ours in programs on eight CPU devices.

Run by test_devices.py in a separate process, because JAX fixes the number of devices at the start.
Prints a JSON object: for each program, the results and the arguments of the host calls, with JAX's
callbacks and with ours.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb

JAX = {"pure": jax.pure_callback, "io": io_callback, "debug": jax.debug.callback}
OURS = {"pure": jaxcb.pure_callback, "io": jaxcb.io_callback, "debug": jaxcb.debug_callback}
AUTO = jax.sharding.AxisType.Auto
MESH = jax.make_mesh((8,), ("d",), axis_types=(AUTO,))
CUBE = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AUTO,) * 3)
X = jax.device_put(jnp.arange(16.0), NamedSharding(MESH, P("d")))
Y = jax.device_put(X, NamedSharding(CUBE, P("b")))
DTYPES = (
    "bool int4 uint4 int8 uint8 int16 int32 uint32 bfloat16 float16 float32 complex64 "
    "float8_e4m3fn float8_e5m2"
).split()


def call(table, flavor, host, x, **options):
    if flavor == "debug":
        table[flavor](host, x, **options)
        return x
    return table[flavor](host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, **options)


def observed(table, flavor, program, **options):
    """Return the result plus one, or the class of the error, and the sorted host arguments."""
    seen = []

    def host(x):
        seen.append(np.asarray(x).tolist())
        return np.asarray(x) * 2

    try:
        array = program(lambda x: call(table, flavor, host, x, **options))
        jax.block_until_ready(array)  # finish all host calls before the next operation may fail
        jax.effects_barrier()
        result = np.asarray(array + 1).tolist()
    except Exception as error:
        result = type(error).__name__
    return result, sorted(seen, key=str)


def shard_map(f):
    return jax.shard_map(f, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)


def partly_manual(manual, f):
    spec = P(tuple(manual))
    return jax.shard_map(
        f, mesh=CUBE, in_specs=spec, out_specs=spec, axis_names=set(manual), check_vma=False
    )


def in_the_context_of_a_mesh(f):
    with MESH:
        return jax.jit(lambda x: f(x) + 1)(X)


def with_a_mesh_set(f):
    with jax.set_mesh(MESH):
        return jax.jit(lambda x: f(x) + 1)(X)


def twice(f):
    """Use the argument and the result of a callback on different devices."""
    rows = NamedSharding(CUBE, P("a", "b"))
    return jax.jit(lambda x: jnp.stack([f(x), jnp.flip(f(x + 1))]), out_shardings=rows)(Y)


PROGRAMS = {
    "eager": lambda f: f(X),
    "jit": lambda f: jax.jit(lambda x: f(x) + 1)(X),
    "shard_map": lambda f: jax.jit(shard_map(f))(X),
    "pmap": lambda f: jax.pmap(f)(X.reshape(8, 2)),
    "partly manual": lambda f: jax.jit(partly_manual("ab", f))(Y),
    "partly manual, vmap": lambda f: jax.jit(partly_manual("ac", jax.vmap(f)))(Y),
    "resharded": twice,
    "in the context of a mesh": in_the_context_of_a_mesh,
    "with a mesh set": with_a_mesh_set,
    "cond": lambda f: jax.jit(lambda x: jax.lax.cond(x[0] == 0, f, lambda x: x, x))(X),
    "vmap": lambda f: jax.jit(jax.vmap(f))(X),
    "scan": lambda f: jax.jit(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0])(X),
    "on device 1": lambda f: f(jax.device_put(jnp.arange(3.0), jax.devices()[1])),
    "on two devices": lambda f: f(
        jax.device_put(1.0, jax.devices()[1]) + 0 * jax.device_put(1.0, jax.devices()[1])
    ),
}


def of_dtype(dtype):
    """Return the expected results of a callback that returns `dtype`, and the actual results."""
    values = np.arange(16) - (0 if dtype.startswith("u") else 8)
    values = np.asarray(jnp.asarray(values).astype(dtype))
    expected = (values, values[3], values[:0])
    f = jax.jit(lambda x: jaxcb.pure_callback(lambda x: expected, expected, x))
    return [
        [np.asarray(x).astype(np.complex64).real.tolist() for x in results]
        for results in (expected, f(X))
    ]


def main():
    found = {}
    for dtype in DTYPES:
        found[dtype] = of_dtype(dtype)
    for flavor in JAX:
        for ordered in [False] if flavor == "pure" else [False, True]:
            for name, program in PROGRAMS.items():
                if flavor == "pure":
                    options = {"vmap_method": "sequential"}
                else:
                    options = {"ordered": ordered}
                key = f"{flavor}{' ordered' * ordered}: {name}"
                found[key] = [observed(t, flavor, program, **options) for t in (JAX, OURS)]
    device = SingleDeviceSharding(jax.devices()[2])
    for flavor in ("pure", "io"):
        found[f"{flavor}: sharding="] = [
            observed(t, flavor, lambda f: jax.jit(lambda x: f(x) + 1)(X), sharding=device)
            for t in (JAX, OURS)
        ]
    found["debug: partitioned"] = [
        observed(t, "debug", lambda f: jax.jit(f)(X), partitioned=True) for t in (JAX, OURS)
    ]
    found["debug: partitioned, vmap"] = [
        observed(t, "debug", lambda f: jax.jit(jax.vmap(f))(X), partitioned=True)
        for t in (JAX, OURS)
    ]
    on_first = jax.device_put(jnp.arange(3.0), jax.devices()[1])
    for flavor in ("pure", "io"):
        found[f"{flavor}: placed"] = [
            (call(t, flavor, np.asarray, on_first).device.id, []) for t in (JAX, OURS)
        ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
