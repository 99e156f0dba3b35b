"""Run programs on two CPU devices whose host functions fail before both devices compute a sum.

Run by test_devices.py in a separate process: a device that does not learn of the failure waits for
the other device until XLA aborts the process. Prints a JSON object: for each program, the error and
the sum of the result of the next run.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb

MESH = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
SHARDED = NamedSharding(MESH, P("d"))
X = jax.device_put(jnp.arange(8.0), SHARDED)


def call(flavor, host, x):
    if flavor == "debug":
        jaxcb.debug_callback(host, x)
        return x
    if flavor == "pure":
        return jaxcb.pure_callback(host, x, x)
    return jaxcb.io_callback(host, x, x, ordered=flavor == "io ordered")


PROGRAMS = {
    "resharded": lambda f: jax.jit(lambda x: f(x) + 1, out_shardings=SHARDED),
    "summed": lambda f: jax.jit(lambda x: (f(x) * x).sum() + jnp.flip(x)),
    "in a loop": lambda f: jax.jit(
        lambda x: jax.lax.fori_loop(0, 3, lambda i, x: f(x) + x.sum(), x), out_shardings=SHARDED
    ),
    "in a branch": lambda f: jax.jit(
        lambda x: jax.lax.cond(x.sum() > 0, f, lambda x: x, x), out_shardings=SHARDED
    ),
}


def outcome(flavor, program):
    """Return the error while the host function fails, and the sum once it works."""
    works = []

    def host(x):
        if not works:
            raise ValueError("no luck")
        return np.asarray(x)

    run = program(lambda x: call(flavor, host, x))
    try:
        with jaxcb.record():  # waits for the program and clears its failed token
            run(X)
        raised = None
    except (ValueError, jax.errors.JaxRuntimeError) as error:
        raised = repr(jaxcb.host_error(error))
    works.append(True)
    return raised, float(run(X).sum())


def main():
    found = {
        f"{flavor}: {name}": outcome(flavor, program)
        for flavor in ("pure", "io", "io ordered", "debug")
        for name, program in PROGRAMS.items()
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
