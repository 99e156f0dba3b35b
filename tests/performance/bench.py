"""Measure the ratios we aim for, in one process with interleaved runs.

    make bench

Each row runs its two or three variants in turn and compares medians, so that a slow moment of the
machine affects all of them. Absolute times are printed only to show the scale.
"""

import argparse
import functools
import gc
import os
import platform
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb
from jupyter_jaxcb.recording import Recorder, activate
from jupyter_jaxcb.recording._columns import ROW
from jupyter_jaxcb.stack.results._checker import result_checker

STRUCT = jax.ShapeDtypeStruct((), np.float32)
LOOP = 1_000
ELEMENTS = 10_000
BIG = 1 << 20  # float32: 4 MB
STEPS = 20  # of a loop over an array of that size


def identity(x):
    return x


def nothing(x):
    pass


def in_loop(call):
    """Return a compiled fori_loop of `LOOP` steps of `call`."""
    return jax.jit(lambda x: jax.lax.fori_loop(0, LOOP, lambda i, x: call(x), x))


def silent(callback):
    def call(x):
        callback(nothing, x)
        return x

    return call


PURE = {
    "jax": in_loop(lambda x: jax.pure_callback(identity, STRUCT, x)),
    "ours": in_loop(lambda x: jaxcb.pure_callback(identity, STRUCT, x)),
}
IO = {
    "jax": in_loop(lambda x: io_callback(identity, STRUCT, x)),
    "ours": in_loop(lambda x: jaxcb.io_callback(identity, STRUCT, x)),
}
DEBUG = {"jax": in_loop(silent(jax.debug.callback)), "ours": in_loop(silent(jaxcb.debug_callback))}
TAP = {
    "jax": in_loop(silent(functools.partial(jax.debug.callback, ordered=True))),
    "ours": in_loop(lambda x: hcb.id_tap(lambda x, transforms: None, x)),
}


def by_element(callback):
    return jax.jit(jax.vmap(lambda x: callback(identity, STRUCT, x, vmap_method="sequential")))


VMAP = {"jax": by_element(jax.pure_callback), "ours": by_element(jaxcb.pure_callback)}
BATCH = np.arange(ELEMENTS, dtype=np.float32)


def bare_loop():
    """Run a Python loop over the same 0-d arrays, without JAX."""
    out = np.empty_like(BATCH)
    for element in range(ELEMENTS):
        out[element] = identity(BATCH[element, ...])
    return out


def run(function, argument):
    jax.block_until_ready(function(argument))
    jax.effects_barrier()


def recorded(function):
    def call():
        recorder = Recorder()
        activate(recorder)
        try:
            function()
        finally:
            activate(None)

    return call


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


def loop_row(name, pair, rounds):
    x = jnp.float32(1)
    times = medians(
        {
            "jax": lambda: run(pair["jax"], x),
            "recorded": recorded(lambda: run(pair["ours"], x)),
            "unrecorded": lambda: run(pair["ours"], x),
        },
        rounds,
    )
    us = {key: value / LOOP * 1e6 for key, value in times.items()}
    return [
        (
            f"recorded {name} call in a loop / JAX's",
            f"{us['recorded'] / us['jax']:.3f}",
            "<= 0.10",
            f"{us['recorded']:.2f} / {us['jax']:.1f} µs a call",
        ),
        (
            f"recording on - off, {name}, a crossing",
            f"{us['recorded'] - us['unrecorded']:+.2f} µs",
            "<= +1.0 µs",
            f"{us['recorded']:.2f} - {us['unrecorded']:.2f} µs",
        ),
    ]


def vmap_rows(rounds):
    x = jnp.asarray(BATCH)
    ours = {
        "recorded": recorded(lambda: run(VMAP["ours"], x)),
        "unrecorded": lambda: run(VMAP["ours"], x),
    }
    # JAX's loop takes some hundred times as long, so the small differences are measured separately.
    against_jax = medians({"jax": lambda: run(VMAP["jax"], x), **ours}, max(rounds // 3, 3))
    separately = medians({"bare": bare_loop, **ours}, 4 * rounds)
    ms = {key: value * 1e3 for key, value in {**separately, "jax": against_jax["jax"]}.items()}
    element = (separately["recorded"] - separately["unrecorded"]) / ELEMENTS * 1e6
    return [
        (
            f"vmap sequential, {ELEMENTS:,} batch elements, recorded / JAX's",
            f"{against_jax['recorded'] / against_jax['jax']:.4f}",
            "<= 0.03",
            f"{against_jax['recorded'] * 1e3:.2f} / {ms['jax']:.0f} ms",
        ),
        (
            "the same unrecorded / a bare Python loop",
            f"{ms['unrecorded'] / ms['bare']:.2f}",
            "<= 1.5",
            f"{ms['unrecorded']:.2f} / {ms['bare']:.2f} ms",
        ),
        (
            "recording on - off, a batch element",
            f"{element:+.3f} µs",
            "<= +0.3 µs",
            f"{ms['recorded']:.2f} - {ms['unrecorded']:.2f} ms",
        ),
        ("kept for each host call", f"{ROW.itemsize} bytes", "<= 64 bytes", ""),
    ]


def plus_one(x):
    return x + np.float32(1)


def plus_one_in_place(context, out, x):
    np.add(out, np.float32(1), out=out)  # `out` is the memory of x, which was donated


def in_place(x):
    """Return a function that runs a loop over a buffer callback whose output aliases its input."""
    call = jaxcb.buffer_callback(plus_one_in_place, x, input_output_aliases={0: 0})
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, STEPS, lambda i, x: call(x), x), donate_argnums=0)
    kept = [x + 0]

    def once():
        kept[0] = jax.block_until_ready(loop(kept[0]))

    return once


def numpy_in_place(x):
    for _ in range(STEPS):
        np.add(x, np.float32(1), out=x)


def big_rows(rounds):
    x = jnp.arange(BIG, dtype=jnp.float32)
    host = np.array(x)
    pure = jax.jit(lambda x: jaxcb.pure_callback(plus_one, x, x))
    of_jax = jax.jit(lambda x: jax.pure_callback(lambda x: plus_one(np.asarray(x)), x, x))
    us = {}
    for variants in (
        {"pure": lambda: run(pure, x), "jax": lambda: run(of_jax, x)},
        {"buffer": in_place(x), "numpy": lambda: numpy_in_place(host)},
    ):
        us |= {key: value * 1e6 for key, value in medians(variants, 4 * rounds).items()}
    return [
        (
            "pure, 4 MB in and out / JAX's",
            f"{us['pure'] / us['jax']:.2f}",
            "<= 0.75",
            f"{us['pure']:.0f} / {us['jax']:.0f} µs",
        ),
        (
            "buffer, 4 MB in place, in a loop / numpy in place",
            f"{us['buffer'] / us['numpy']:.2f}",
            "<= 1.15",
            f"{us['buffer'] / STEPS:.1f} / {us['numpy'] / STEPS:.1f} µs a call",
        ),
    ]


def check_rows(rounds):
    """Measure the cost of checking a result that matches its declaration."""
    numbers = np.zeros(1_000, np.float32)
    tree = {"a": numbers, "b": numbers[0:1].reshape(()), "c": numbers}
    rows = []
    for name, result, bar in (("an array", numbers, "<= 0.3 µs"), ("a dict of three", tree, "")):
        leaves, structure = jax.tree.flatten(result)
        check = result_checker(
            "host", structure, [x.shape for x in leaves], [x.dtype for x in leaves]
        )

        def checks(check=check, result=result):
            for _ in range(LOOP):
                check(result)

        def empty_loop():
            for _ in range(LOOP):
                pass

        took = medians({"checks": checks, "baseline": empty_loop}, 4 * rounds)
        us = (took["checks"] - took["baseline"]) / LOOP * 1e6
        rows.append((f"checking a result, {name}", f"{us:.2f} µs", bar, ""))
    return rows


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


def rows_of(rounds):
    for name, pair in (("pure", PURE), ("io", IO), ("debug", DEBUG), ("tap", TAP)):
        yield from loop_row(name, pair, rounds)
    yield from vmap_rows(rounds)
    yield from big_rows(rounds)
    yield from check_rows(rounds)


if __name__ == "__main__":
    show(__doc__, rows_of)
