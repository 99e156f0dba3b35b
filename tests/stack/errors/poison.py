"""Make callbacks fail, and check that later programs are not affected.

test_poison.py runs this in a separate process. It prints a JSON object with, for each flavor in
each program, the exceptions raised, how often the ordered call after the failing one is made, and
what unrelated callbacks receive afterwards.
"""

import faulthandler
import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb

DEVICES = jax.device_count()
warnings.simplefilter("ignore")  # jax.pmap is deprecated
hcb.flags.update("raise_at_once", True)

MESH = jax.make_mesh((DEVICES,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
X = jax.device_put(jnp.arange(float(4 * DEVICES)), NamedSharding(MESH, P("d")))


class Host:
    """Fail until `luck` is set."""

    __name__ = "host"
    luck = False

    def __call__(self, x, *transforms):
        if not self.luck:
            raise ValueError("no luck")
        return np.asarray(x)


class Later:
    __name__ = "later"

    def __init__(self):
        self.seen = []

    def __call__(self, x, *transforms):
        self.seen.append(np.asarray(x).tolist())


def without_result(callback, **options):
    """Return a program with two calls that return nothing, one after the other."""

    def program(host, later, x):
        callback(host, x, **options)
        callback(later, x, **options)
        return x + 1

    return program


def with_result(ordered):
    def program(host, later, x):
        y = jaxcb.io_callback(host, x, x, ordered=ordered)
        if ordered:
            jaxcb.io_callback(later, None, x, ordered=True)
        return y + 1

    return program


def io_without_result(host, x, ordered):
    def silent(x):
        host(x)

    jaxcb.io_callback(silent, None, x, ordered=ordered)


def pure(host, later, x):
    return jaxcb.pure_callback(host, x, x) + 1


FLAVORS = {
    "pure": pure,
    "io": with_result(False),
    "io ordered": with_result(True),
    "io ordered, no result": without_result(io_without_result, ordered=True),
    "debug": without_result(jaxcb.debug_callback),
    "tap": without_result(hcb.id_tap),
}
if DEVICES == 1:
    FLAVORS["debug ordered"] = without_result(jaxcb.debug_callback, ordered=True)


def jitted(f):
    return jax.jit(f)


def summed(f):
    return jax.jit(lambda x: f(x) + x.sum() - x.sum())


def in_a_loop(f):
    return jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, x: f(x) - x.sum() + x.sum(), x) - 1)


def sharded(f):
    return jax.jit(jax.shard_map(f, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False))


def pmapped(f):
    return lambda x: jax.pmap(f)(np.asarray(x).reshape(DEVICES, -1)).reshape(-1)


def resharded(f):
    return jax.jit(f, out_shardings=NamedSharding(MESH, P("d")))


PROGRAMS = {"jit": jitted, "sum": summed, "loop": in_a_loop, "shard_map": sharded, "pmap": pmapped,
            "resharded": resharded}  # fmt: skip


def raised(run):
    try:
        jax.block_until_ready(run())
        jax.effects_barrier()
    except Exception as error:
        return f"{type(error).__name__} from {error.__cause__!r}"


LATER = Later()
in_program = jax.jit(lambda x: io_without_result(LATER, x, True))
tapped = jax.jit(lambda x: (hcb.id_tap(LATER, x), x)[1])


def unrelated():
    """Return the values that ordered callbacks unrelated to the failed ones receive."""
    LATER.seen.clear()
    jax.block_until_ready(in_program(1.0))
    jax.effects_barrier()
    jaxcb.io_callback(LATER, None, jnp.float32(2), ordered=True)
    tapped(3.0)
    hcb.barrier_wait()
    return list(LATER.seen)


def outcome(flavor, program):
    host, later = Host(), Later()
    run = program(lambda x: flavor(host, later, x))
    reported = {
        "raised": [raised(lambda: run(X)), raised(lambda: run(X))],
        "later": len(later.seen),
    }
    reported["unrelated"] = unrelated()
    host.luck = True
    reported["result"] = np.asarray(run(X)).tolist()
    jax.effects_barrier()
    return reported


def main():
    found = {}
    for flavor, call in FLAVORS.items():
        for name, program in PROGRAMS.items():
            faulthandler.dump_traceback_later(20, exit=True)
            found[f"{flavor}: {name}"] = outcome(call, program)
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"cases": found, "x": X.tolist()}))


if __name__ == "__main__":
    main()
