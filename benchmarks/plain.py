"""Compare large arrays, and host calls with a Python loop and with NumPy, which need no JAX.

    make bench

Interleaved runs in one process.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

from ._interleaved import ELEMENTS, identity, medians, run, show

BIG = 1 << 20  # float32: 4 MB
STEPS = 20  # of a loop over an array of that size
BATCH = np.arange(ELEMENTS, dtype=np.float32)


def bare_loop():
    """Run a Python loop over the same 0-d arrays, without JAX."""
    out = np.empty_like(BATCH)
    for element in range(ELEMENTS):
        out[element] = identity(BATCH[element, ...])
    return out


def loop_row(rounds):
    vmapped = jax.jit(jax.vmap(jaxcb.pure(identity, result="x")))
    x = jnp.asarray(BATCH)
    times = medians({"bare": bare_loop, "ours": lambda: run(vmapped, x)}, 4 * rounds)
    return (
        f"vmap sequential, {ELEMENTS:,} batch elements, not recorded / a bare Python loop",
        f"{times['ours'] / times['bare']:.2f}",
        "<= 1.5",
        f"{times['ours'] * 1e3:.2f} / {times['bare'] * 1e3:.2f} ms",
    )


def plus_one(x):
    return np.asarray(x) + np.float32(1)


def big_row(rounds):
    x = jnp.arange(BIG, dtype=jnp.float32)
    ours = jax.jit(lambda x: jaxcb.pure_callback(plus_one, x, x))
    of_jax = jax.jit(lambda x: jax.pure_callback(plus_one, x, x))
    times = medians({"ours": lambda: run(ours, x), "jax": lambda: run(of_jax, x)}, 4 * rounds)
    us = {name: seconds * 1e6 for name, seconds in times.items()}
    return (
        "pure, 4 MB in and out / JAX's",
        f"{us['ours'] / us['jax']:.2f}",
        "<= 0.75",
        f"{us['ours']:.0f} / {us['jax']:.0f} µs",
    )


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


def buffer_row(rounds):
    x = jnp.arange(BIG, dtype=jnp.float32)
    host = np.array(x)
    times = medians({"buffer": in_place(x), "numpy": lambda: numpy_in_place(host)}, 4 * rounds)
    us = {name: seconds / STEPS * 1e6 for name, seconds in times.items()}
    return (
        "buffer, 4 MB in place, in a loop / numpy in place",
        f"{us['buffer'] / us['numpy']:.2f}",
        "<= 1.15",
        f"{us['buffer']:.1f} / {us['numpy']:.1f} µs a call",
    )


if __name__ == "__main__":
    show(__doc__, lambda rounds: [loop_row(rounds), big_row(rounds), buffer_row(rounds)])
