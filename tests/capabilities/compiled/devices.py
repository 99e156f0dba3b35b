"""Call compiled functions on four CPU devices, and print results and numbers of calls.

test_handler.py runs this in a separate process. It prints a JSON object: for each way to run on
several devices, the result, the number of recorded calls, and the error if there is one.
"""

import ctypes
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb

SEEN = []  # several devices append to it
note = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: SEEN.append(x) or x)


def running_sum(x):
    return np.cumsum(x)


def noted(x):
    note(x[0])
    return 2 * x


def number(x):
    return x + 1


def outcome(program, x):
    SEEN.clear()
    result, error = None, None
    with jaxcb.record() as r:
        try:
            result = np.asarray(program(x)).tolist()
        except NotImplementedError as raised:
            error = str(raised)
    calls = r.recording
    return {
        "result": result, "calls": len(calls), "seen": sorted(SEEN), "error": error,
        "crossings": len({call.crossing for call in calls}),
    }  # fmt: skip


def main():
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("d")))
    pure = jaxcb.pure(running_sum, result="x", compile="numba")
    element = jaxcb.pure(number, result="x", compile="numba")
    io = jaxcb.io(noted, result="x", compile="numba")
    from_one = jax.sharding.SingleDeviceSharding(jax.devices()[2])
    placed = jaxcb.io(noted, result="x", compile="numba", sharding=from_one)

    def sharded(f):
        return jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False)

    programs = {
        "pure: jit": jax.jit(pure),
        "pure: jit of vmap": jax.jit(jax.vmap(element)),
        "pure: shard_map": jax.jit(sharded(pure)),
        "pure: shard_map of vmap": jax.jit(sharded(jax.vmap(element))),
        "pure: eager": pure,
        "io: jit": jax.jit(io),
        "io: from one device": jax.jit(placed),
        "io: shard_map": jax.jit(sharded(io)),
    }
    found = {name: outcome(program, x) for name, program in programs.items()}
    rows = np.asarray(x).reshape(4, 2)
    found["pure: pmap"] = outcome(jax.pmap(pure), rows)
    found["io: pmap"] = outcome(jax.pmap(io), rows)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
