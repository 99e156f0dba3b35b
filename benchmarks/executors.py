"""Compare batch elements on several workers with the loop over them, alternately in one process.

    make bench

It also shows whether XLA makes two independent calls at the same time.
"""

import argparse
import logging
import os
import statistics
import threading
import time

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import distributed
import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

ELEMENTS, SLOW_SECONDS, TRIVIAL = 64, 0.02, 10_000
WORKERS = 2
NUMBER = jax.ShapeDtypeStruct((), np.float32)


def by_element(host, **options):
    return jax.jit(
        jax.vmap(
            lambda x: jaxcb.pure_callback(host, NUMBER, x, vmap_method="sequential", **options)
        )
    )


def slow(x):
    time.sleep(SLOW_SECONDS)  # stands for a call that waits or computes without the GIL
    return x


def trivial(x):
    return x


def alternately(variants, rounds):
    """Return the median seconds of each variant, without the first run, which starts workers."""
    took = {name: [] for name in variants}
    for number in range(rounds + 1):
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            if number:
                took[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in took.items()}


def rows_of_elements(executors, rounds):
    x, many = np.arange(ELEMENTS, dtype=np.float32), np.arange(TRIVIAL, dtype=np.float32)
    bars = {"threads": ">= 1.8", "processes": ">= 1.7", "dask": ">= 1.6"}
    for host, operand, what in ((slow, x, "slow"), (trivial, many, "trivial")):
        functions = {
            name: by_element(host, executor=executor) for name, executor in executors.items()
        }
        functions["loop"] = by_element(host)
        runs = {
            name: (lambda f=f, x=operand: jax.block_until_ready(f(x)))
            for name, f in functions.items()
        }
        took = alternately(runs, rounds if what == "slow" else 5 * rounds)
        for name in executors:
            if what == "slow":
                ratio = took["loop"] / took[name]
                row = (
                    f"{ELEMENTS} batch elements of 20 ms, loop / {name}",
                    f"{ratio:.2f}",
                    bars[name],
                )
            else:
                ratio = took[name] / took["loop"]
                row = f"{TRIVIAL:,} trivial batch elements, {name} / loop", f"{ratio:.2f}", "<= 3"
            yield (*row, f"{took[name] * 1e3:.1f} ms, loop {took['loop'] * 1e3:.1f} ms")


def rows_of_two_callbacks():
    """Yield the largest number of simultaneous host calls, of two independent ones in a program."""
    inside, most, lock = [0], [0], threading.Lock()

    def host(x):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.1)
        with lock:
            inside[0] -= 1
        return x

    def two(x, **options):
        call = lambda x: jaxcb.pure_callback(host, x, x, **options)  # noqa: E731
        return call(x) + call(x + 1)

    x = jnp.ones(2)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    shards = jax.jit(jax.shard_map(two, mesh=mesh, in_specs=spec, out_specs=spec))
    pool = lambda x: two(x, executor="threads")  # noqa: E731
    f, g = jax.jit(two), jax.jit(two)
    first, second = jax.devices()[:2]

    def two_devices():
        a, b = f(jax.device_put(x, first)), g(jax.device_put(x, second))
        jax.block_until_ready((a, b))

    for name, run in (
        ("two pure callbacks in one program, one device", lambda: f(x)),
        ("the same with executor='threads'", lambda: jax.jit(pool)(x)),
        ("the same in shard_map over two devices", lambda: shards(x)),
        ("the same, dispatched to two devices", two_devices),
    ):
        jax.block_until_ready(run())
        most[0] = 0
        start = time.perf_counter()
        jax.block_until_ready(run())
        took = time.perf_counter() - start
        yield name, f"{most[0]} at once", "", f"{took * 1e3:.0f} ms of host calls of 100 ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="alternate runs of each")
    rounds = parser.parse_args().rounds
    cluster = distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )  # fmt: skip
    with cluster, distributed.Client(cluster) as client:
        executors = {"threads": "threads:2", "processes": "processes:2", "dask": client}
        rows = [*rows_of_elements(executors, rounds), *rows_of_two_callbacks()]
    width = max(len(row[0]) for row in rows)
    for name, value, bar, detail in rows:
        print(f"{name:<{width}}  {value:>10}  {bar:<8}  {detail}")


if __name__ == "__main__":
    main()
