"""Measure how much memory many callbacks leave allocated.

Run by test_31319_lambdas.py in a separate process. Prints a JSON object: for each workload, the
growth of the resident memory of the process in megabytes, after garbage collection.
"""

import gc
import json
import os
import sys


def resident_megabytes():
    gc.collect()
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(host_calls, registrations, compiled, lambdas):
    import jax
    import numpy as np

    import jupyter_jaxcb as jaxcb

    one = np.float32(1)
    scalar = jax.ShapeDtypeStruct((), np.float32)

    @jaxcb.pure(result="x")
    def increment(x):
        return x + one

    @jax.jit
    def loop(n):
        return jax.lax.fori_loop(0, n, lambda i, x: increment(x), one)

    def call_in_a_loop(n):
        assert loop(n).item() == n + 1

    def register_and_call(n):
        for i in range(n // 2):

            @jaxcb.pure(result="x")
            def add(x, i=i):
                return x + np.float32(i)

            assert add(one) == i + 1
            assert jaxcb.io(lambda x, i=i: x * np.float32(i), result="x")(one) == i

    def register_and_compile(n):
        for i in range(n):
            add = jaxcb.pure(lambda x, i=i: x + np.float32(i), result="x")
            assert jax.jit(lambda x, add=add: add(x) + 1)(one) == i + 2

    def eager_lambdas(pure_callback):
        def call(n):
            for i in range(n):
                assert pure_callback(lambda x, i=i: x + np.float32(i), scalar, one) == i + 1

        return call

    work = {
        "host calls": (call_in_a_loop, host_calls),
        "registrations": (register_and_call, registrations),
        "compiled registrations": (register_and_compile, compiled),
        "lambdas": (eager_lambdas(jaxcb.pure_callback), lambdas),
        "lambdas of jax": (eager_lambdas(jax.pure_callback), lambdas),
    }
    grown = {}
    for name, (do, count) in work.items():
        do(max(20, count // 50))  # warm up, so that caches filled only once do not count
        before = resident_megabytes()
        do(count)
        grown[name] = resident_megabytes() - before
    print(json.dumps(grown))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
