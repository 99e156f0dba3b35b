"""Compare profiled and recorded programs with the same programs alone; time how a profile is read.

    make bench

Interleaved runs in one process; a large profile is read in a process of its own.
"""

import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

from ._interleaved import LOOP, identity, run, show

LARGE = """
import resource, time, jax, jax.numpy as jnp, numpy as np, jupyter_jaxcb as jaxcb
step = jax.jit(lambda x: jax.lax.fori_loop(0, 1_000_000, lambda i, c: jnp.sin(c) @ c * 0.5, x))
x = np.ones((64, 64), np.float32)
step.lower(x).compile()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with jaxcb.profile() as p:
    step(x).block_until_ready()
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
known = p.profile.wall_ns - p.profile.of_kind("unknown")
print(p.profile.events, known / 1e9, p.profile.reading_ns / 1e9, grown / 1e6)
"""


def large():
    """A profile that is cut short: events, seconds that it covers, seconds to read it, GB."""
    found = subprocess.run(
        [sys.executable, "-c", LARGE], capture_output=True, text=True, check=True
    )
    return [float(word) for word in found.stdout.split()]


def inside(block, program, x):
    """Return the seconds of a run inside a block, without those before and after it."""

    def timed():
        with block():
            start = time.perf_counter()
            run(program, x)
            return time.perf_counter() - start

    return timed


def row(name, goal, first, second, program, x, rounds, unit=1e3, word="ms"):
    times = {"first": [], "second": []}
    for _ in range(rounds):
        times["first"].append(inside(first, program, x)())
        times["second"].append(inside(second, program, x)())
    one, other = (np.median(seconds) * unit for seconds in times.values())
    return name, f"{one / other:.3f}", goal, f"{one:.2f} / {other:.2f} {word}"


def rows(rounds):
    matrix = np.ones((500, 500), np.float32) / 500
    step = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, y: jnp.tanh(x @ y), x))
    run(step, matrix)
    yield row(
        "50 matrix products of 2 ms, profiled / recorded", "<= 1.05",
        jaxcb.profile, jaxcb.record, step, matrix, rounds,
    )  # fmt: skip
    plain = jaxcb.pure(identity, result="x")
    scalar = jax.jit(lambda x: jax.lax.fori_loop(0, LOOP, lambda _, x: plain(x), x))
    run(scalar, 1.0)
    yield row(
        "a crossing of a scalar, profiled / recorded", "",
        jaxcb.profile, jaxcb.record, scalar, 1.0, rounds, 1e6 / LOOP, "µs",
    )  # fmt: skip


if __name__ == "__main__":
    show(__doc__, rows)
    events, covered, reading, grown = large()
    print(
        f"A program of tiny operations: {events:,.0f} events in {covered:.1f} s, read in "
        f"{reading:.1f} s (goal 5) with {grown:.2f} GB (goal 1)"
    )
