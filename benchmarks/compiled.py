"""Compare compiled callbacks with those in Python, with numba's own loops and with SciPy.

    make bench

Interleaved runs in one process.
"""

import os
import statistics
import time

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import jax
import jax.numpy as jnp
import numba
import numpy as np
import scipy.special
from scipy.special import cython_special

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Recorder, activate

from ._interleaved import ELEMENTS, LOOP, medians, run, show

STEPS = 100 * LOOP  # of a loop of compiled calls
REPEATS = 100  # vmapped calls in one program
MANY = 100_000  # elements of jv


def half(x):
    return np.float32(0.5) * x


def iterated(x):
    for _ in range(50):
        x = np.sin(x)
    return x


def in_loop(callback, steps):
    return jax.jit(lambda x: jax.lax.fori_loop(0, steps, lambda i, x: callback(x), x))


@numba.njit
def loop_of_numba(x, out):
    for n in range(x.size):
        out[n] = np.float32(0.5) * x[n]


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def scalar_rows(rounds):
    """Measure calls in a loop; what compiled code logs is read after the program."""
    x = jnp.float32(1)
    python = in_loop(jaxcb.pure(half, result="x"), LOOP)
    compiled = in_loop(jaxcb.pure(half, result="x", compile="numba"), STEPS)
    times = {"python": [], "recorded": [], "read": [], "unrecorded": []}
    for variant in (python, compiled):
        run(variant, x)
    for _ in range(rounds):
        times["unrecorded"].append(timed(lambda: run(compiled, x)) / STEPS)
        activate(Recorder())
        times["recorded"].append(timed(lambda: run(compiled, x)) / STEPS)
        times["read"].append(timed(lambda: activate(None)) / STEPS)
        activate(Recorder())
        times["python"].append(timed(lambda: run(python, x)) / LOOP)
        activate(None)
    ns = {name: statistics.median(values) * 1e9 for name, values in times.items()}
    return [
        (
            "compiled call in a loop / one in Python, both recorded",
            f"{ns['recorded'] / ns['python']:.3f}",
            "<= 0.06",
            f"{ns['recorded']:.0f} / {ns['python']:.0f} ns a call",
        ),
        (
            "the same recorded / unrecorded",
            f"{ns['recorded'] / ns['unrecorded']:.2f}",
            "<= 1.5",
            f"{ns['recorded']:.0f} / {ns['unrecorded']:.0f} ns a call, read later in "
            f"{ns['read']:.0f} ns",
        ),
    ]


def vmap_rows(rounds):
    """Measure batch elements: in the program, and alone, as the recording has it."""
    x = jnp.arange(ELEMENTS, dtype=jnp.float32)
    host, out = np.array(x), np.empty(ELEMENTS, np.float32)
    loop_of_numba(host, out)
    python = jax.jit(jax.vmap(jaxcb.pure(half, result="x")))
    compiled = in_loop(jax.vmap(jaxcb.pure(half, result="x", compile="numba")), REPEATS)
    times = medians(
        {"python": lambda: run(python, x), "compiled": lambda: run(compiled, x)}, rounds
    )
    us = {name: seconds * 1e6 for name, seconds in times.items()}
    own = us["compiled"] / REPEATS
    alone, numbas = [], []
    for _ in range(rounds):
        with jaxcb.record() as r:
            run(compiled, x)
        crossings = r.recording.calls.reshape(REPEATS, ELEMENTS)
        alone += (crossings["end_ns"][:, -1] - crossings["start_ns"][:, 0]).tolist()
        numbas += [timed(lambda: loop_of_numba(host, out)) * 1e9 for _ in range(REPEATS)]
    alone, numba_ns = statistics.median(alone), statistics.median(numbas)
    return [
        (
            f"vmap sequential, {ELEMENTS:,} elements, compiled / in Python",
            f"{own / us['python']:.5f}",
            "<= 0.01",
            f"{own:.2f} / {us['python']:.0f} µs",
        ),
        (
            "the crossing alone / a loop of numba over the same arrays",
            f"{alone / numba_ns:.2f}",
            "<= 1.3",
            f"{alone:.0f} / {numba_ns:.0f} ns",
        ),
    ]


def bessel_row(rounds):
    with jax.enable_x64(True):
        z = jnp.linspace(0.1, 10, MANY)
        host = np.asarray(z)
        jv = jaxcb.pure(cython_special.jv, compile="numba")
        program = jax.jit(lambda z: jv(1.5, z))
        times = medians(
            {"ours": lambda: run(program, z), "scipy": lambda: scipy.special.jv(1.5, host)}, rounds
        )
    return (
        f"jv of {MANY:,} numbers / scipy.special.jv",
        f"{times['ours'] / times['scipy']:.2f}",
        "<= 1.2",
        f"{times['ours'] * 1e3:.1f} / {times['scipy'] * 1e3:.1f} ms",
    )


def shards_row(rounds):
    """Run two shards at the same time, without the GIL, and one after the other."""
    callback = jax.vmap(jaxcb.pure(iterated, result="x", compile="numba"))
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("shard",))
    spec = jax.sharding.PartitionSpec("shard")
    both = jax.jit(jax.shard_map(callback, mesh=mesh, in_specs=spec, out_specs=spec))
    shards = jax.device_put(jnp.ones(2 * MANY), jax.sharding.NamedSharding(mesh, spec))
    one, shard = jax.jit(callback), jnp.ones(MANY)

    def in_turn():
        for _ in range(2):
            run(one, shard)

    times = medians({"both": lambda: run(both, shards), "in turn": in_turn}, rounds)
    return (
        "two shards, one after the other / in shard_map",
        f"{times['in turn'] / times['both']:.2f}",
        ">= 1.7",
        f"{times['in turn'] * 1e3:.1f} / {times['both'] * 1e3:.1f} ms",
    )


def rows_of(rounds):
    return [*scalar_rows(rounds), *vmap_rows(rounds), bessel_row(rounds), shards_row(rounds)]


if __name__ == "__main__":
    show(__doc__, rows_of, f"numba {numba.__version__}, ")
