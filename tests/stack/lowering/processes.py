"""Call host functions in one of several processes with two devices; print a JSON object of facts.

test_processes.py runs this script in two processes.
"""

import json
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize

seen = []


def double(x):
    seen.append(x.tolist())
    return 2 * x


def look(x):
    seen.append(x.tolist())


OBSERVED = {
    "pure": lambda x: jax.pure_callback(double, x, x),
    "io": lambda x: io_callback(double, x, x) + 1,
    "debug": lambda x: (jax.debug.callback(look, x), 2 * x)[1],
    "pure, called in process 1": lambda x: jax.pure_callback(
        double, x, x, sharding=jax.sharding.SingleDeviceSharding(jax.devices()[-1])
    ),
}
FLAVORS = {
    "pure": lambda x: jaxcb.pure_callback(double, x, x),
    "io": lambda x: jaxcb.io_callback(double, x, x),
    "debug": lambda x: (jaxcb.debug_callback(look, x), 2 * x)[1],
}


def over_all(f, mesh, record=jaxcb.record):
    """Call `f` with 8 numbers sharded over all processes; return local shards and the recording."""
    x, spread = np.arange(8, dtype=np.float32), NamedSharding(mesh, P("d"))
    whole = jax.make_array_from_callback(x.shape, spread, lambda index: x[index])
    seen.clear()
    with record() as recorded:
        y = jax.block_until_ready(f(whole))
        jax.effects_barrier()
    return [part.data.tolist() for part in y.addressable_shards], recorded.recording


def facts(recording):
    """Return the facts that the tests check."""
    (site,) = summarize(recording)
    return {
        "calls": len(recording),
        "status": str(site.status),
        "reason": site.reason,
        "expected": site.expected,
    }


def programs():
    mesh = Mesh(np.array(jax.devices()), ("d",))
    for name, f in FLAVORS.items():
        spread = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d")))
        for kind, program in (("shard_map", spread), ("jit", jax.jit(f))):
            parts, recording = over_all(program, mesh)
            yield f"{name}: {kind}", {"parts": parts, "seen": sorted(seen), **facts(recording)}


def observed():
    """Return, for JAX's own callbacks, local shards, facts and warnings."""
    everywhere, some = Mesh(np.array(jax.devices()), ("d",)), jax.devices()[::-2]
    for name, f in OBSERVED.items():
        for mesh in (everywhere, Mesh(np.array(some), ("d",))):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                parts, recording = over_all(jax.jit(f), mesh, jaxcb.observe_jax)
            texts = [str(one.message) for one in caught]
            key = name if mesh is everywhere else f"{name}, on devices 3 and 1"
            yield key, {"parts": parts, "warned": texts, **facts(recording)}


def fail(words):
    def host(x):
        raise ValueError(words)

    return jax.jit(lambda x: jaxcb.pure_callback(host, x, x))


def error_of(f, *args):
    try:
        jax.block_until_ready(f(*args))
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        return str(error)
    return "nothing"


def failing_for_all():
    """Return the error in each process if process 0, which calls for all, fails.

    Process 1 had a different error before, with the same number.
    """
    if jax.process_index() == 1:
        error_of(fail("no luck here"), jnp.float32(1))
    return error_of(over_all, fail("no luck for all"), Mesh(np.array(jax.devices()), ("d",)))


def main():
    index, port, count = map(int, sys.argv[1:])
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", count, index)
    found = {
        "programs": dict(programs()),
        "observed": dict(observed()),
        "failing for all": failing_for_all(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
