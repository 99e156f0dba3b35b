"""Make host calls with 64-bit arguments that are still being computed.

Run by test_x64_on_threads.py in a separate process, in which no other test has run. Prints a JSON
object: for each dtype, with JAX's callbacks and with ours, the dtype and value of every argument,
and every result or the class of its error.
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

CALLS = 40


def outcome(value, dtype, pure_callback):
    seen = []

    def double(x):
        seen.append((str(x.dtype), np.asarray(x).item()))
        return np.asarray(x) * 2

    def program(x, w):
        for _ in range(4):  # long enough that it still runs when the callback is dispatched
            w = w @ w
        return x + w[0, 0]

    with jax.enable_x64(True):
        declared = jax.ShapeDtypeStruct((), dtype)
        late = jax.jit(program)
        call = jax.jit(lambda x: pure_callback(double, declared, x))
        size = 300 if jnp.issubdtype(dtype, jnp.floating) else 100  # integer products are slow
        x, w = jnp.asarray(value, dtype), jnp.zeros((size, size), dtype)
        results = []
        for result in [call(late(x, w)) for _ in range(CALLS)]:
            try:
                results.append(result.item())
            except jax.errors.JaxRuntimeError as error:
                results.append(type(error).__name__)
    return {"arrived": seen, "results": results}


def main(values):
    table = {"theirs": jax.pure_callback, "ours": jaxcb.pure_callback}
    found = {
        dtype: {whose: outcome(value, dtype, pure) for whose, pure in table.items()}
        for dtype, value in values.items()
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
