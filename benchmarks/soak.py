"""A mixed load for an hour: no host call is lost or made twice, and memory does not grow.

    make soak SECONDS=3600

Round by round, threads run programs of every kind, whose host functions count their calls and whose
results are checked. The recording of a round must have exactly these calls. A round also interrupts
a block; every 20 rounds JAX's caches are cleared, and programs and callbacks are made anew. The
exit status is 1 if a call was lost or memory grew; after Ctrl-C the results so far are printed.
"""

import argparse
import collections
import functools
import gc
import os
import random
import sys
import threading
import time
import warnings
import weakref

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

STEPS, THREADS, ANEW = 12, 3, 20
MAY_GROW_MB = 60  # after half of the time, by a line fitted to the measurements
COMPILED_MB = 1  # kept by numba for each compiled function
XS = np.arange(6, dtype=np.float32)


class Unlucky(Exception):
    """Raised by a host function on purpose."""


class Load:
    """The programs of one thread; `counts` has the calls of its host functions by name."""

    def __init__(self, number):
        self.number, self.counts, self.random = number, collections.Counter(), random.Random(number)

    def host(self, kind, function):
        """Return a host function that counts its calls."""
        name = f"{kind}_{self.number}"

        @functools.wraps(function)  # whose parameters declare results
        def host(*args):
            self.counts[name] += 1
            return function(*args)

        host.__name__ = host.__qualname__ = name
        return host

    def prepare(self):
        """Make the programs, by kind: each returns its result, and whether it is right."""
        double = lambda x: 2 * x  # noqa: E731
        vmaps = [
            jax.jit(jax.vmap(jaxcb.pure(self.host(method, double), result="x", vmap_method=method)))
            for method in ("sequential", "expand_dims", "broadcast_all")
        ]
        pool = jaxcb.pure(self.host("pool", double), result="x", executor="threads:2")
        ordered = jaxcb.io(self.host("ordered", lambda x: x + 1), result="x", ordered=True)
        look = jaxcb.debug(self.host("look", lambda x: None))
        queued = jaxcb.debug(self.host("queued", lambda x: None), queued=True)
        fill = jaxcb.buffer(self.host("fill", triple), result="x")
        tapped = jaxcb.tap(self.host("tapped", lambda x: None))
        masked = jaxcb.pure(self.host("masked", double), result="x")
        failing = jaxcb.pure(self.host("failing", self.fails), result="x")
        shift = np.float32(self.number)
        compiled = jaxcb.pure(lambda x: x + shift, result="x", compile="numba")
        inverse = jaxcb.host_object(lambda a: Inverse(a), max_objects=2)
        solve = jaxcb.pure(self.host("solve", lambda a, b: inverse(a).of @ b), result="b")

        def step(x, _):
            x = ordered(x)
            look(x), queued(x)
            return x, None

        scan = jax.jit(lambda x: jax.lax.scan(step, x, length=7)[0])
        program = jax.jit(lambda x: jax.vmap(lambda x: masked.where(x > 2, x, otherwise=x))(x))
        self.inverse, self.late = inverse, jax.jit(jax.vmap(failing))
        self.kinds = {
            "vmap": lambda: (self.random.choice(vmaps)(XS), 2 * XS),
            "pool": lambda: (jax.jit(jax.vmap(pool))(XS), 2 * XS),
            "loop": lambda: (scan(np.float32(1)), 8),
            "buffer": lambda: (jax.jit(fill)(XS), 3 * XS),
            "tap": lambda: (jax.jit(jax.vmap(lambda x: tapped(x) * 2))(XS), 2 * XS),
            "mask": lambda: (program(XS), np.where(XS > 2, 2 * XS, XS)),
            "compiled": lambda: (jax.jit(jax.vmap(compiled))(XS), XS + shift),
            "object": lambda: self.solved(solve),
            "gradient": lambda: (jax.grad(lambda x: scanned_sine(self, x))(0.5), np.cos(0.5)),
            "error": self.raises,
        }
        sine = jaxcb.pure(self.host("sine", np.sin), result="x")
        cosine = jaxcb.pure(self.host("cosine", np.cos), result="x")
        sine.defjvp(lambda primals, tangents: (sine(*primals), cosine(*primals) * tangents[0]))
        self.sine = sine

    def fails(self, x):
        if x == 3:
            raise Unlucky(f"three, in thread {self.number}")
        return x

    def raises(self):
        try:
            jax.block_until_ready(self.late(XS))
        except jax.errors.JaxRuntimeError as error:
            return isinstance(jaxcb.host_error(error), Unlucky), True
        return "no error", "an error"

    def solved(self, solve):
        a = np.eye(3, dtype=np.float32) * self.random.randint(1, 4)
        result = jax.jit(solve)(a, jnp.ones(3)), np.linalg.solve(a, np.ones(3))
        assert self.inverse.info().objects <= 2
        return result

    def run(self, wrong):
        """Run random kinds; add what was wrong to the list."""
        for kind in self.random.choices([*self.kinds], k=STEPS):
            try:
                result, expected = self.kinds[kind]()
                if not np.allclose(result, expected, rtol=1e-4):
                    wrong.append(f"{kind}: {result} is not {expected}")
            except BaseException as error:
                wrong.append(f"{kind}: {error!r}")


def triple(out, x):
    np.multiply(x, 3, out=out)


class Inverse:
    """An object that host functions keep."""

    def __init__(self, a):
        self.of = np.linalg.inv(a)


def scanned_sine(load, x):
    return jax.lax.scan(lambda c, _: (load.sine(c), None), x, length=1)[0]


def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def recorded_calls(recording):
    """Return the calls by name, without those of machine code, which nothing counts."""
    rows = recording.calls["lowered"].tolist()
    names = (recording.lowered[row].site.function for row in rows)
    return collections.Counter(name for name in names if name != "<lambda>")


def do_round(loads, wrong):
    """Run all threads at once, and compare the recording with the counts."""
    for load in loads:
        load.counts.clear()
    with jaxcb.record() as recorded:
        threads = [threading.Thread(target=load.run, args=(wrong,)) for load in loads]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        jax.effects_barrier()
    ran = sum((load.counts for load in loads), collections.Counter())
    found = recorded_calls(recorded.recording)
    if found != ran:
        wrong.append(f"ran {ran - found}, only recorded {found - ran}")
    try:
        with jaxcb.record():
            loads[0].kinds["loop"]()
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        jax.effects_barrier()
    return ran.total()


def make_anew(loads, wrong):
    """Drop all programs and callbacks; none of them may stay alive."""
    dropped = [weakref.ref(load.sine) for load in loads if hasattr(load, "sine")]
    for load in loads:
        load.prepare()
    jax.clear_caches()
    gc.collect()
    alive = sum(one() is not None for one in dropped)
    if alive:
        wrong.append(f"{alive} of {len(dropped)} callbacks are alive after they were dropped")


def growth(memory):
    """Return by how many MB a line through the second half of the measurements grows."""
    seconds, mb = np.array(memory[len(memory) // 2 :]).T
    return np.polyfit(seconds, mb, 1)[0] * (seconds[-1] - seconds[0]) if len(mb) > 3 else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    seconds = parser.parse_args().seconds
    warnings.simplefilter("ignore", jaxcb.ImpureFunctionWarning)  # they count their calls
    loads, wrong, memory = [Load(number) for number in range(THREADS)], [], []
    began, rounds, calls = time.monotonic(), 0, 0
    try:
        while time.monotonic() < began + seconds:
            if rounds % ANEW == 0:
                make_anew(loads, wrong)
                memory.append((time.monotonic() - began, resident_mb()))
            calls += do_round(loads, wrong)
            rounds += 1
    except KeyboardInterrupt:
        print("interrupted early")
    grown = growth(memory)
    allowed = MAY_GROW_MB + COMPILED_MB * THREADS * len(memory) / 2
    if grown > allowed:
        wrong.append(f"memory grew by {grown:.0f} MB, of at most {allowed:.0f}")
    print(f"{rounds} rounds, {calls:,} host calls, {grown:+.0f} MB", *wrong[:10], sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
