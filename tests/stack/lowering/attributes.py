"""Print how programs with callbacks are lowered for each platform, ours and JAX's, as JSON."""

import functools
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jupyter_jaxcb as jaxcb

CALLBACKS = {
    "jax": {"pure": jax.pure_callback, "io": io_callback, "debug": jax.debug.callback},
    "ours": {"pure": jaxcb.pure_callback, "io": jaxcb.io_callback, "debug": jaxcb.debug_callback},
}
MESH = Mesh(np.array(jax.devices()), "d")
SPREAD = NamedSharding(MESH, PartitionSpec("d"))
ATTRIBUTE = re.compile(r"([\w.]+) = (.*?)(?=, [\w.]+ = |\} : )")


def call(callback, flavor, options, x):
    if flavor == "debug":
        callback(lambda x: None, x, **options)
        return x
    return callback(lambda x: x, x, x, **options)


def programs(function):
    spread = jax.shard_map(
        function, mesh=MESH, in_specs=SPREAD.spec, out_specs=SPREAD.spec, check_vma=False
    )
    return {
        "one device": (function, jnp.zeros(4)),
        "jit": (function, jax.ShapeDtypeStruct((4,), jnp.float32, sharding=SPREAD)),
        "shard_map": (spread, jax.device_put(jnp.zeros(4), SPREAD)),
    }


def attributes(program, argument, platform):
    """Return the attributes of each custom call, except for its number; None if it is refused."""
    try:
        lowered = jax.jit(program).trace(argument).lower(lowering_platforms=(platform,))
    except ValueError:  # JAX refuses an ordered debug callback over several devices
        return None
    found = []
    for line in lowered.as_text().splitlines():
        target = re.search(r"@(xla_\w+callback)\(", line)
        if target:
            types = line.rsplit("} : ", 1)[1]
            operands, results = types.split(" -> ")
            own = dict(ATTRIBUTE.findall(line.split(") {", 1)[1])) | {
                "operands": operands,
                "results": results,
            }
            own.pop("mhlo.backend_config")
            found.append({"target": target[1], **own})
    return found


class Tpu:
    """The backend that JAX asks for when it lowers a callback for a TPU; none is needed."""

    platform = "tpu"

    def make_python_callback_from_host_send_and_recv(self, *arguments):
        return object()  # JAX keeps it beside the program


def text_for_tpu(program, argument):
    """Return the whole program, without its name; None if it is refused."""
    try:
        lowered = jax.jit(program).trace(argument).lower(lowering_platforms=("tpu",))
    except ValueError:
        return None
    return re.sub(r"module @\w+", "", lowered.as_text())


def all_programs(table):
    for flavor, callback in table.items():
        for ordered in (False, True)[: 1 + (flavor != "pure")]:
            options = {"ordered": True} if ordered else {}
            function = functools.partial(call, callback, flavor, options)
            for name, program in programs(function).items():
                yield f"{name}: {flavor}{' ordered' * ordered}", program


if __name__ == "__main__":
    found = {}
    for whose, table in CALLBACKS.items():
        for platform in ("cpu", "cuda", "rocm") if whose == "ours" else ("cpu",):
            for key, program in all_programs(table):
                found.setdefault(key, {})[f"{whose} {platform}"] = attributes(*program, platform)
    mlir.ModuleContext.get_backend = lambda *arguments, **options: Tpu()
    for whose, table in CALLBACKS.items():
        for key, program in all_programs(table):
            found[key][f"{whose} tpu"] = text_for_tpu(*program)
    print(json.dumps(found))
