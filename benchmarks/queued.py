"""Compare queued calls with other calls, and with programs without a callback.

    make bench

Interleaved runs in one process. The time of a program ends with its result; the
queue is empty before each run.
"""

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

from ._interleaved import LOOP, show

STEPS = 1_000  # with one call of a millisecond each
WIDTH = 64  # of the matrix that a step multiplies, which takes one core
PRODUCTS = 100  # in a step
BIG = np.ones((1_000, 1_000), np.float32)  # 4 MB


def nothing(x):
    pass


def slow(x):
    time.sleep(0.001)


def loop(call):
    def body(_, x):
        call(x)
        return x * 0.5

    return jax.jit(lambda x: jax.lax.fori_loop(0, LOOP, body, x))


def training(call):
    def body(_, x):
        x = jax.lax.fori_loop(0, PRODUCTS, lambda _, x: jnp.tanh(x @ x), x)
        call(x[0, 0])
        return x

    return jax.jit(lambda x: jax.lax.fori_loop(0, STEPS, body, x))


def program_seconds(variants, rounds):
    """Return the median seconds of programs until they return; queued calls are made afterwards."""
    times = {name: [] for name in variants}
    for _ in range(rounds + 1):  # the first compiles
        for name, (program, argument) in variants.items():
            start = time.perf_counter()
            jax.block_until_ready(program(argument))
            times[name].append(time.perf_counter() - start)
            jax.effects_barrier()
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def crossing_row(rounds):
    x = jnp.float32(1)
    variants = {
        "queued": (loop(jaxcb.debug(nothing, queued=True)), x),
        "plain": (loop(jaxcb.debug(nothing)), x),
    }
    us = {name: s / LOOP * 1e6 for name, s in program_seconds(variants, 3 * rounds).items()}
    return (
        "queued crossing of a scalar / unqueued with an empty function",
        f"{us['queued'] / us['plain']:.2f}",
        "<= 1.5",
        f"{us['queued']:.2f} / {us['plain']:.2f} µs",
    )


def training_rows(rounds):
    x = jnp.eye(WIDTH)
    variants = {
        "queued": (training(jaxcb.debug(slow, queued=True)), x),
        "plain": (training(jaxcb.debug(slow)), x),
        "none": (training(lambda x: None), x),
    }
    ms = {name: s * 1e3 for name, s in program_seconds(variants, max(rounds // 3, 3)).items()}
    return [
        (
            f"{STEPS:,} steps with a queued call of 1 ms / without calls",
            f"{ms['queued'] / ms['none']:.2f}",
            "<= 1.05",
            f"{ms['queued']:.0f} / {ms['none']:.0f} ms; unqueued {ms['plain']:.0f} ms",
        )
    ]


def big_row(rounds):
    x = jnp.asarray(BIG)
    variants = {
        "queued": (jax.jit(jaxcb.debug(nothing, queued=True)), x),
        "plain": (jax.jit(jaxcb.debug(nothing)), x),
    }
    us = {name: s * 1e6 for name, s in program_seconds(variants, 10 * rounds).items()}
    return (
        "queued crossing of 4 MB / unqueued; XLA makes the only copy",
        f"{us['queued'] / us['plain']:.2f}",
        "<= 1.5",
        f"{us['queued']:.0f} / {us['plain']:.0f} µs",
    )


def rows_of(rounds):
    return [crossing_row(rounds), *training_rows(rounds), big_row(rounds)]


if __name__ == "__main__":
    show(__doc__, rows_of)
