"""Record calls on four CPU devices, in any order, and print the device of each shard.

test_placed.py runs this in a separate process. It prints a JSON object: for each way to run on
several devices, triples of shard, device and first number of the argument, as recorded, and the
device that really has the shard with this number.
"""

import itertools
import json
import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize, to_text


def host(x):
    return x


def pure(x):
    return jaxcb.pure_callback(host, x, x, vmap_method="sequential")


def io(x):
    return jaxcb.io_callback(host, x, x)


def debug(x):
    jaxcb.debug_callback(host, x)
    return x


def sharded(f, mesh, spec):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


def facts_of(run):
    """Return the facts in a recording of one run."""
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
    recording = recorded.recording
    triples = []
    for sample in recording.sample_values:
        fact = recording.lowered[sample.lowered]
        first = float(sample.operands[0].strip("[]…").split(",")[0])
        triples.append([fact.shard, fact.device, first])
    (summary,) = summarize(recording)
    (shapes,) = summary.shapes
    return {
        "samples": sorted(triples, key=str),
        "calls": len(recording),
        "devices": list(shapes.devices),
        "gathered": shapes.gathered_bytes,
        "text": to_text(recording, times=False).splitlines()[1],
    }


def placed(x):
    return sorted(
        [f"{s.device.platform}:{s.device.id}", float(np.ravel(s.data)[0])]
        for s in x.addressable_shards
    )


def main():
    found = {}
    devices = np.array(jax.devices())
    for flavor in (pure, io, debug):
        for order in ([0, 1, 2, 3], [2, 0, 3, 1], [3, 1]):
            mesh = Mesh(devices[order], ("d",))
            x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("d")))
            f = sharded(flavor, mesh, P("d"))
            key = f"{flavor.__name__}: shard_map on {order}"
            found[key] = facts_of(lambda f=f, x=x: f(x)) | {"placed": placed(x)}
            found[f"{key}, again"] = facts_of(lambda f=f, x=x: f(x)) | {"placed": placed(x)}
            chosen = list(devices[order])
            f = jax.pmap(flavor, devices=chosen)
            xs = np.arange(2.0 * len(chosen), dtype=np.float32).reshape(len(chosen), 2)
            y = jax.pmap(lambda x: x, devices=chosen)(xs)
            found[f"{flavor.__name__}: pmap on {order}"] = facts_of(lambda f=f, xs=xs: f(xs)) | {
                "placed": placed(y)
            }
    grid = Mesh(devices[[2, 0, 3, 1]].reshape(2, 2), ("a", "b"))
    for names in itertools.permutations("ab"):
        spec = P(names)
        x = jax.device_put(jnp.arange(8.0), NamedSharding(grid, spec))
        f = sharded(pure, grid, spec)
        found[f"shard_map on a grid by {names}"] = facts_of(lambda f=f, x=x: f(x)) | {
            "placed": placed(x)
        }
    mesh = Mesh(devices, ("d",))
    x = jax.device_put(jnp.arange(40.0), NamedSharding(mesh, P("d")))
    found["jit"] = facts_of(lambda: jax.jit(lambda x: pure(x) + 1)(x))
    found["jit, two arguments"] = facts_of(
        lambda: jax.jit(lambda x, y: jaxcb.pure_callback(lambda x, y: x, x, x, y) + 1)(
            x, x[:8].astype(jnp.int8)
        )
    )
    found["jit on one device"] = facts_of(lambda: jax.jit(lambda x: pure(x) + 1)(jnp.arange(40.0)))
    threads_found = []
    f = sharded(pure, mesh, P("d"))
    compiled = f.lower(x).compile()
    thread = threading.Thread(target=lambda: threads_found.append(facts_of(lambda: compiled(x))))
    thread.start()
    thread.join()
    found["ahead of time, in a thread"] = threads_found[0] | {"placed": placed(x)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
