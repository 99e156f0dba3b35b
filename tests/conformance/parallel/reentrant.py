"""Nest callbacks three deep, in host functions that run JAX, and print how often each was called.

This is a script because a deadlock would hang the tests, and because cores and options have to be
set before JAX is used. Arguments: the callbacks to use, separated by commas (``jax``, or ours as
``numpy`` or ``arrays``, by the arrays they pass); the extent of the operands; ``one`` or ``all``
cores; ``synchronous`` or ``asynchronous`` dispatch on the CPU.
"""

import collections
import functools
import json
import os
import sys
import threading

callbacks, extent, cores, dispatch = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
if cores == "one":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import io_callback  # noqa: E402

import jupyter_jaxcb as jaxcb  # noqa: E402

if dispatch == "synchronous":
    jax.config.update("jax_cpu_enable_async_dispatch", False)

OURS = (jaxcb.pure_callback, jaxcb.io_callback, jaxcb.debug_callback)
TABLES = {
    "jax": (jax.pure_callback, io_callback, jax.debug.callback),
    "numpy": tuple(functools.partial(f, arrays="numpy") for f in OURS),
    "arrays": tuple(functools.partial(f, arrays="jax") for f in OURS),
}
LIKE = jax.ShapeDtypeStruct((extent, extent), np.float32)
calls = collections.Counter()


def inner(x):
    calls["pure"] += 1
    return np.asarray(x) + 1


def nest(compiled, pure, io, debug):
    def middle(x):
        y = compiled(lambda x: pure(inner, LIKE, x) * 2)(x)
        calls["io"] += 1
        return np.asarray(y)

    def outer(x):
        y = compiled(lambda x: io(middle, LIKE, x) - 1)(x)
        calls["debug", float(np.asarray(y)[0, 0])] += 1

    def program(x):
        debug(outer, x)
        return pure(middle, LIKE, x)

    return jax.jit(program)


def in_sequence(f, x):
    for number in range(3):
        np.testing.assert_array_equal(f(x + number), 2.0 * number + 4)
    jax.effects_barrier()


def in_flight(f, x):
    """Dispatch the program while its operand is still being computed."""
    work = jax.jit(lambda x, number: x @ jnp.eye(extent) + number)
    results = [f(work(x, number)) for number in range(4)]
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, 2.0 * number + 4)
    jax.effects_barrier()


def in_threads(f, x):
    threads = [threading.Thread(target=in_sequence, args=(f, x)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


MAKERS = {
    "eager": (lambda f: f, in_sequence),
    "jit": (jax.jit, in_sequence),
    "in flight": (jax.jit, in_flight),
    "threads": (jax.jit, in_threads),
}

found = {}
for kind in callbacks.split(","):
    for name, (compiled, run) in MAKERS.items():
        calls.clear()
        print("running:", kind, name, file=sys.stderr, flush=True)
        run(nest(compiled, *TABLES[kind]), jnp.ones((extent, extent)))
        counts = [[*([key] if isinstance(key, str) else key), n] for key, n in calls.items()]
        found.setdefault(kind, {})[name] = sorted(counts)
print(json.dumps(found))
