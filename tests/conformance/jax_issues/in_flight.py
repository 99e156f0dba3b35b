"""Dispatch many host calls while their arguments are still being computed.

Run by test_24255_hang.py in a separate process, which may hang. Prints "calling" before the first
call, and at the end a JSON object: for each use of the argument, flavor and kind of arrays, whether
the results are wrong.
"""

import functools
import itertools
import json
import os
import sys

CALLS = 50
SIZE = 300


def main(whose, cores, uses, flavors=("pure",), arrays=("numpy",), dispatch="async"):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import io_callback

    import jupyter_jaxcb as jaxcb

    if dispatch == "sync":
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    callbacks = {
        "theirs": {"pure": jax.pure_callback, "io": io_callback},
        "ours": {"pure": jaxcb.pure_callback, "io": jaxcb.io_callback},
    }[whose]
    # Every entry of the argument of call i is i + 1 / SIZE.
    use = {
        "np.max": lambda x: np.max(x),
        "index": lambda x: x[0, 0],
        "iterate": lambda x: sum(row[0] for row in x) / SIZE,
        "jnp": lambda x: jnp.max(x),
        "np.asarray": lambda x: np.asarray(x).max(),
    }
    scalar = jax.ShapeDtypeStruct((), np.float32)
    x = jnp.full((SIZE, SIZE), 1 / SIZE, jnp.float32).block_until_ready()
    print("calling", flush=True)
    wrong = {}
    for name, flavor, kind in itertools.product(uses, flavors, arrays):
        options = {"arrays": kind} if whose == "ours" else {}
        call = functools.partial(callbacks[flavor], **options)
        f = jax.jit(
            lambda x, y, used=use[name], call=call: call(
                lambda x: np.float32(used(x)), scalar, y @ x @ x
            )
        )
        results = [f(x, x @ x + i) for i in range(CALLS)]
        error = np.abs(np.array(results) / (np.arange(CALLS) + 1 / SIZE) - 1).max()
        wrong[f"{name}, {flavor}, {kind}"] = bool(error > 1e-3)
    print(json.dumps(wrong), flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
