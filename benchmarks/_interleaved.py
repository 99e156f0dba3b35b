"""How the benchmarks measure that compare variants of their own: interleaved, in one process."""

import argparse
import gc
import os
import platform
import statistics
import time

import jax

LOOP = 1_000
ELEMENTS = 10_000


def identity(x):
    return x


def run(function, argument):
    jax.block_until_ready(function(argument))
    jax.effects_barrier()


def medians(variants, rounds):
    """Return the median seconds of each variant; each round runs all of them in another order."""
    for variant in variants.values():
        variant()
    times = {name: [] for name in variants}
    names = list(variants)
    gc.disable()
    try:
        for number in range(rounds):
            shift = number % len(names)
            for name in names[shift:] + names[:shift]:
                start = time.perf_counter()
                variants[name]()
                times[name].append(time.perf_counter() - start)
    finally:
        gc.enable()
    return {name: statistics.median(values) for name, values in times.items()}


def show(about, rows_of, versions=""):
    """Print the machine, and rows of name, value, goal and detail that ``rows_of(rounds)`` has."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rounds", type=int, default=15, help="interleaved runs of each variant")
    rounds = parser.parse_args().rounds
    rows = list(rows_of(rounds))
    print(
        f"jax {jax.__version__} on {jax.devices()[0].device_kind}, {versions}Python "
        f"{platform.python_version()}, {os.cpu_count()} cores; medians of {rounds} interleaved runs"
    )
    width = max(len(row[0]) for row in rows)
    for name, value, bar, detail in rows:
        print(f"{name:<{width}}  {value:>10}  {bar:<12}  {detail}")
