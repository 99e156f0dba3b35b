"""The rows of `make bench`, and the process that measures them.

This file uses public names of the package only, so that it can measure any checkout of it. It is
not imported but started, with the checkout to be measured in PYTHONPATH. Its first line says which
package it imported, and has the rows. Then it reads one request a line from standard input,
``["row", "ours" or "jax", seconds]``, and answers each with one line: a list of measurements, or
the text of an error.
"""

import contextlib
import functools
import gc
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb

STRUCT = jax.ShapeDtypeStruct((), np.float32)
LOOP = 200  # short runs: the fastest of many is hardly disturbed
ELEMENTS = 10_000
ONE = jnp.float32(1)
clock = time.process_time  # on a GPU, tests/accelerator takes another
# Each import is that of a new process.
IMPORTS = """
import os, time, jax
for _ in range(3):
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        start = time.process_time()
        import jupyter_jaxcb
        print(time.process_time() - start, flush=True)
        os._exit(0)
"""


class Program(NamedTuple):
    """What one measurement runs: `run`, with what `prepare` returns unless it is None."""

    run: Callable
    calls: int = 1  # in one run
    prepare: Callable | None = None


class Row(NamedTuple):
    """One row: `ours` and `jax` make a `Program`, or `ours` measures by itself, with its `unit`.

    If the baseline is not JAX's own callback, the name of the row says after "JAX:" what it is.
    """

    ours: Callable
    jax: Callable | None = None
    recorded: bool = False
    unit: str = "s"
    block: Callable | None = None  # a context manager in which `ours` runs, in place of `record`
    jax_recorded: bool = False
    wall: bool = False  # wall time in place of the CPU time of all threads


def identity(x):
    return x


def nothing(x):
    pass


def half(x):
    return np.float32(0.5) * x


def three(x):
    return {"a": x, "b": x, "c": x}


def fill(context, out, x):
    np.asarray(out)[...] = np.asarray(x)


def passes(call):
    """Return a function that makes a call for its effect, and returns its argument."""

    def step(x):
        call(x)
        return x

    return step


def finish(result):
    jax.block_until_ready(result)
    jax.effects_barrier()


def loop(call, x=ONE, steps=LOOP):
    program = jax.jit(lambda x: jax.lax.fori_loop(0, steps, lambda i, x: call(x), x))
    return Program(lambda: finish(program(x)), steps)


def until_it_returns(call):
    """Make a loop whose queued calls are made later."""
    program = jax.jit(lambda x: jax.lax.fori_loop(0, LOOP, lambda i, x: call(x), x))
    return Program(lambda: jax.block_until_ready(program(ONE)), LOOP)


def vmapped(call, elements=ELEMENTS, repeats=1):
    x = jnp.arange(elements, dtype=jnp.float32)
    call = jax.vmap(call)
    program = jax.jit(lambda x: jax.lax.fori_loop(0, repeats, lambda i, x: call(x), x))
    return Program(lambda: finish(program(x)), elements * repeats)


def pure(callback, **options):
    return lambda x: callback(identity, STRUCT, x, **options)


def dict_of_three(callback):
    return lambda x: callback(three, three(STRUCT), x)["b"]


def eager(call):
    return Program(lambda: finish(call(ONE)))


def decorate():
    def run():
        for _ in range(20):
            jaxcb.pure(lambda x: x, result="x")

    return Program(run, 20)


def first_call(call):
    return Program(lambda: finish(jax.jit(lambda x: call(x) + 1)(ONE)))


def block():
    program = jax.jit(jaxcb.pure(identity, result="x"))

    def run():
        with jaxcb.record():
            finish(program(ONE))

    return Program(run)


def shown(show):
    """Show new recordings of a vmapped call, and of a call that JAX removes."""

    def run():
        call = jaxcb.pure(identity, result="x")
        program = jax.jit(jax.vmap(lambda x: (call(x) + 1, call(x - 1))[0]))

        def record():
            with jaxcb.record() as recorded:
                for _ in range(5):
                    finish(program(jnp.ones(20)))
            return recorded.recording

        return Program(show, prepare=record)

    return run


def masked():
    call = jaxcb.pure(identity, result="x")
    return vmapped(lambda x: call.where(x % 100 == 0, x, otherwise=0.0))


def plus_one(x):
    return np.asarray(x) + np.float32(1)


def add_in_place(context, out, x):
    np.add(out, np.float32(1), out=out)  # `out` is the memory of x, which was donated


def in_place(steps=20):
    """Make a loop over a buffer callback whose output aliases its input, 4 MB."""
    x = jnp.ones(1 << 20)
    call = jaxcb.buffer_callback(add_in_place, x, input_output_aliases={0: 0})
    program = jax.jit(
        lambda x: jax.lax.fori_loop(0, steps, lambda i, x: call(x), x), donate_argnums=0
    )
    kept = [x]

    def run():
        kept[0] = jax.block_until_ready(program(kept[0]))

    return Program(run, steps)


def in_place_by_numpy():
    x = np.ones(1 << 20, np.float32)
    return Program(lambda: np.add(x, np.float32(1), out=x))


def python_loop():
    """Make a Python loop over the elements of an array, without JAX."""
    batch = np.arange(ELEMENTS, dtype=np.float32)

    def run():
        out = np.empty_like(batch)
        for element in range(ELEMENTS):
            out[element] = identity(batch[element, ...])

    return Program(run, ELEMENTS)


def numba_loop():
    import numba

    @numba.njit
    def fill(x, out):
        for n in range(x.size):
            out[n] = np.float32(0.5) * x[n]

    x = np.arange(ELEMENTS, dtype=np.float32)
    out = np.empty_like(x)
    return Program(lambda: [fill(x, out) for _ in range(LOOP)], LOOP * ELEMENTS)


def training(call, steps=200):
    """Make a loop whose steps take about half a millisecond, with one call each."""

    def step(_, x):
        x = jax.lax.fori_loop(0, 100, lambda _, x: jnp.tanh(x @ x), x)
        call(x[0, 0])
        return x

    program = jax.jit(lambda x: jax.lax.fori_loop(0, steps, step, x))
    return Program(lambda: jax.block_until_ready(program(jnp.eye(64))), steps)


def sleeps(x):
    time.sleep(0.001)
    return x


def elements_that_sleep(**options):
    """Make a batch of 64 calls of 20 ms, which release the GIL."""

    def slow(x):
        time.sleep(0.02)
        return x

    call = jax.jit(jax.vmap(jaxcb.pure(slow, result="x", **options)))
    return Program(lambda: finish(call(jnp.ones(64))), 64)


def descent(steps=2000):
    """Make a loop over gradient descent with momentum, in eight lines, 50 µs each."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(200, 64)) / 64, jnp.float32)

    def step(carry, _):
        w, m = carry
        h = jnp.tanh(x @ w)
        r = h - 0.5 * x
        loss = jnp.mean(r**2)
        slope = x.T @ (r * (1 - h**2))
        m = 0.9 * m + slope
        size = 0.01 / (1 + jnp.linalg.norm(m) + loss)
        w = w - size * m
        return (w, m), None

    program = jax.jit(lambda w: jax.lax.scan(step, (w, 0 * w), length=steps)[0])
    w = jnp.ones((64, 64)) / 64
    return Program(lambda: finish(program(w)), steps)


def bytes_of_a_call(seconds):
    """Return the memory that a recording keeps for each of further host calls."""
    program = loop(pure(jaxcb.pure_callback), steps=5_000)
    kept, sizes = [], [0]
    program.run()
    tracemalloc.start()
    for runs in (1, 3):
        with jaxcb.record() as recorded:
            for _ in range(runs):
                program.run()
        kept.append(recorded.recording)
        del recorded
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    first, second = np.diff(sizes)
    return [(second - first) / (2 * program.calls)]


def import_time(seconds):
    done = subprocess.run([sys.executable, "-P", "-c", IMPORTS], stdout=subprocess.PIPE, check=True)
    return [float(line) for line in done.stdout.split()]


def both(name, ours, of_jax=None):
    """Two rows: recorded and not."""
    return {
        f"{name}, recorded": Row(ours, of_jax, recorded=True),
        f"{name}, not recorded": Row(ours, of_jax),
    }


ROWS = {
    **both(
        "pure call in a loop",
        lambda: loop(pure(jaxcb.pure_callback)),
        lambda: loop(pure(jax.pure_callback)),
    ),
    **both(
        "io call in a loop",
        lambda: loop(pure(jaxcb.io_callback)),
        lambda: loop(pure(io_callback)),
    ),
    **both(
        "debug call in a loop",
        lambda: loop(passes(lambda x: jaxcb.debug_callback(nothing, x))),
        lambda: loop(passes(lambda x: jax.debug.callback(nothing, x))),
    ),
    **both(
        "tap in a loop; JAX: ordered debug call",
        lambda: loop(lambda x: hcb.id_tap(lambda x, transforms: None, x)),
        lambda: loop(passes(lambda x: jax.debug.callback(nothing, x, ordered=True))),
    ),
    "pure call that returns a dict of three, recorded": Row(
        lambda: loop(dict_of_three(jaxcb.pure_callback)),
        lambda: loop(dict_of_three(jax.pure_callback)),
        recorded=True,
    ),
    **both(
        "batch element, sequential, 10,000",
        lambda: vmapped(pure(jaxcb.pure_callback, vmap_method="sequential")),
        lambda: vmapped(pure(jax.pure_callback, vmap_method="sequential"), LOOP),
    ),
    "batch of 10,000, expand_dims, recorded": Row(
        lambda: vmapped(pure(jaxcb.pure_callback, vmap_method="expand_dims"), repeats=20),
        lambda: vmapped(pure(jax.pure_callback, vmap_method="expand_dims"), repeats=20),
        recorded=True,
    ),
    **both(
        "eager call",
        lambda: eager(jaxcb.pure(identity, result="x")),
        lambda: eager(pure(jax.pure_callback)),
    ),
    "decorate": Row(decorate),
    **both(
        "first call: trace and compile",
        lambda: first_call(jaxcb.pure(identity, result="x")),
        lambda: first_call(pure(jax.pure_callback)),
    ),
    "buffer call in a loop, 4 kB": Row(
        lambda: loop(lambda x: jaxcb.buffer_callback(fill, x)(x), jnp.ones(1_000)),
        lambda: loop(lambda x: buffer_callback(fill, x)(x), jnp.ones(1_000)),
    ),
    "pure call in a loop, 1 MB in and out": Row(
        lambda: loop(lambda x: jaxcb.pure_callback(plus_one, x, x), jnp.ones(1 << 18)),
        lambda: loop(lambda x: jax.pure_callback(plus_one, x, x), jnp.ones(1 << 18)),
    ),
    "buffer call in a loop, 4 MB in place; JAX: NumPy": Row(in_place, in_place_by_numpy),
    "batch element, sequential; JAX: a Python loop": Row(
        lambda: vmapped(pure(jaxcb.pure_callback, vmap_method="sequential")), python_loop
    ),
    "batch element, where: 100 of 10,000 needed; JAX: all": Row(
        masked, lambda: vmapped(jaxcb.pure(identity, result="x"))
    ),
    "call with linear= in a loop; JAX: without": Row(
        lambda: loop(jaxcb.pure(identity, result="x", linear="x")),
        lambda: loop(jaxcb.pure(identity, result="x")),
    ),
    "queued call in a loop; JAX: not queued; wall time": Row(
        lambda: until_it_returns(passes(jaxcb.debug(nothing, queued=True))),
        lambda: until_it_returns(passes(jaxcb.debug(nothing))),
        wall=True,
    ),
    "step with a queued call of 1 ms; JAX: no call; wall time": Row(
        lambda: training(jaxcb.debug(sleeps, queued=True)), lambda: training(nothing), wall=True
    ),
    **{
        f"element of 20 ms, {workers}:2; JAX: looped; wall time": Row(
            functools.partial(elements_that_sleep, executor=f"{workers}:2"),
            elements_that_sleep,
            wall=True,
        )
        for workers in ("threads", "processes")
    },
    "call in a loop, profiled; JAX: recorded": Row(
        lambda: loop(jaxcb.pure(identity, result="x")),
        lambda: loop(jaxcb.pure(identity, result="x")),
        block=jaxcb.profile,
        jax_recorded=True,
    ),
    "step of 50 µs, watched; JAX: not watched": Row(descent, descent, block=jaxcb.watching),
    "step of 50 µs, first='nan'; JAX: not watched": Row(
        descent, descent, block=functools.partial(jaxcb.watching, first="nan")
    ),
    **both(
        "numba call in a loop",
        lambda: loop(jaxcb.pure(half, result="x", compile="numba"), steps=10 * LOOP),
        lambda: loop(lambda x: jax.pure_callback(half, STRUCT, x)),
    ),
    "numba batch element, sequential; JAX: a loop of numba": Row(
        lambda: vmapped(jaxcb.pure(half, result="x", compile="numba"), repeats=LOOP), numba_loop
    ),
    "block of record() around one call": Row(block),
    "print(recording)": Row(shown(str)),
    "_repr_mimebundle_": Row(shown(lambda recording: recording._repr_mimebundle_())),
    "kept for a recorded call": Row(bytes_of_a_call, unit="bytes"),
    "import jupyter_jaxcb, after JAX": Row(import_time),
}


@functools.cache
def program_of(name, who):
    program = getattr(ROWS[name], who)()
    once(program)  # compiles
    gc.collect()
    gc.freeze()  # what is there now need not be looked at again
    return program


def block_of(row, who):
    """Return the context manager in which a row is measured."""
    if who == "ours" and row.block:
        return row.block()
    recorded = row.recorded if who == "ours" else row.jax_recorded
    return jaxcb.record() if recorded else contextlib.nullcontext()


def once(program, now=None):
    """Return the seconds of one call: of the CPU, in all threads of this process."""
    now = now or clock
    arguments = () if program.prepare is None else (program.prepare(),)
    start = now()
    program.run(*arguments)
    return (now() - start) / program.calls


def measure(name, who, seconds):
    """Return the seconds a call of as many runs as take `seconds`, or what the row measures."""
    row = ROWS[name]
    if row.ours in (bytes_of_a_call, import_time):
        return row.ours(seconds)
    program, now = program_of(name, who), time.perf_counter if row.wall else clock
    times = []
    with block_of(row, who):
        once(program)  # the first calls of a recording keep sample values
        jax.effects_barrier()
        gc.collect()
        gc.disable()
        end = now() + seconds
        while len(times) < 3 or now() < end:
            times.append(once(program, now))
            jax.effects_barrier()  # of queued calls
        gc.enable()
    return times


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what host functions print is no answer
    rows = {name: [row.jax is not None, row.unit] for name, row in ROWS.items()}
    print(json.dumps([jaxcb.__file__, jax.__version__, rows]), file=answers, flush=True)
    for request in sys.stdin:
        try:
            answer = measure(*json.loads(request))
        except Exception as error:
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
