"""The load of one thread of the soak test: programs whose host functions count their calls."""

import os
import tempfile
import threading
import weakref
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS
from jupyter_jaxcb.stack import cell_begins, cell_ends

METHODS = tuple(VMAP_METHODS)
LATE = """
@jaxcb.pure(result='x')
def {name}(x):
    count({name!r})
    return np.float32(x * {factor})
"""


class Unlucky(Exception):
    """Raised by host functions on purpose."""


class Counts:
    """Thread-safe numbers of calls by the name of the host function."""

    def __init__(self):
        self._lock = threading.Lock()
        self._counts = Counter()

    def __call__(self, name):
        with self._lock:
            self._counts[name] += 1

    def now(self):
        with self._lock:
            return Counter(self._counts)


def named(name, function):
    function.__name__ = function.__qualname__ = name
    return function


class Load:
    """The programs of one thread, each with separate host functions.

    Args:
        number: the number of the thread.
        count: called with the name of a host function each time it runs.
    """

    def __init__(self, number, count):
        self.prefix = f"w{number}_"
        self.rng = np.random.default_rng(number)
        self.count = count
        self.done = Counter()  # steps done, by kind
        self.scope = {"jaxcb": jaxcb, "np": np, "count": count, "__name__": f"soak_{number}"}
        self.kinds = {
            "vmap": self.vmap,
            "threads": self.threads,
            "processes": self.processes,
            "error": self.error,
            "interrupt": self.interrupt,
            "register": self.register,
            "loop": self.loop,
            "buffer": self.buffer,
            "tap": self.tap,
            "drop-ins": self.drop_ins,
            "jax callbacks": self.jax_callbacks,
            "nested recording": self.nested,
            "fresh program": self.fresh,
        }
        self.factor = 1.0
        number, self.tally = tempfile.mkstemp(prefix="jaxcb-soak-")  # one byte per call
        os.close(number)
        weakref.finalize(self, os.unlink, self.tally)
        self.prepare()

    def prepare(self):
        """Make the programs; after `jax.clear_caches`, JAX compiles them again."""
        self.vmapped = {m: jax.jit(jax.vmap(self.counted(m, m))) for m in METHODS}
        self.spread = jax.jit(jax.vmap(self.counted("spread", executor="threads:2")))
        self.sent = jax.jit(jax.vmap(self.in_processes("sent", self.tally)))
        self.register_again()
        self.late = jax.jit(lambda x: self.scope[f"{self.prefix}late"](x))
        self.failing = jax.jit(jax.vmap(self.counted("failing", "sequential", self.raises)))
        self.stopped = jax.jit(self.counted("stopped", act=self.stops))
        self.prepare_flavors()

    def prepare_flavors(self):
        """Make the programs with flavors other than pure."""
        count, prefix = self.count, self.prefix

        @jaxcb.io(result=lambda x: x, ordered=True)
        @lambda f: named(f"{prefix}step", f)
        def step(x):
            count(f"{prefix}step")
            return x + np.float32(1)

        @jaxcb.debug
        @lambda f: named(f"{prefix}look", f)
        def look(x):
            count(f"{prefix}look")

        @jaxcb.buffer(result=lambda x: x)
        @lambda f: named(f"{prefix}fill", f)
        def fill(out, x):
            count(f"{prefix}fill")
            np.multiply(x, 3, out=out)

        @jaxcb.tap
        @lambda f: named(f"{prefix}tapped", f)
        def tapped(x):
            count(f"{prefix}tapped")

        def body(x, _):
            x = step(x)
            look(x)
            return x, x

        self.scanned = jax.jit(lambda x, n: jax.lax.scan(body, x, None, length=7)[0])
        self.filled = jax.jit(fill)
        self.taps = jax.jit(jax.vmap(lambda x: tapped(x) * 2))

    def counted(self, name, method=None, act=lambda x: x, **options):
        """Return a pure callback that applies `act` to its argument and doubles the result."""
        name = self.prefix + name

        def double(x):
            self.count(name)
            return act(x) * np.float32(2)

        if method is not None:
            options["vmap_method"] = method
        return jaxcb.pure(named(name, double), result=lambda x: x, **options)

    def in_processes(self, name, path):
        """Return an io callback that doubles in worker processes and counts its calls in a file."""

        def double(x):
            with open(path, "ab") as tally:
                tally.write(b".")
            return x * np.float32(2)

        double = named(self.prefix + name, double)
        return jaxcb.io(double, result=lambda x: x, executor="processes:2")

    def raises(self, x):
        if x == 3:
            raise Unlucky(f"three, in {self.prefix}")
        return x

    def stops(self, x):
        raise KeyboardInterrupt

    def register_again(self):
        self.factor = float(self.rng.integers(2, 9))
        source = LATE.format(name=f"{self.prefix}late", factor=self.factor)
        run = cell_begins(self.scope, self.prefix)  # as if a cell ran again
        try:
            exec(compile(source, "ipykernel_1/1.py", "exec"), self.scope)
        finally:
            cell_ends(run)

    def run(self, steps, observed):
        """Do `steps` random steps, each of which checks the results of its program."""
        for kind in self.rng.choice(list(self.kinds), steps):
            if kind == "jax callbacks" and not observed:
                continue
            self.kinds[kind]()
            self.done[str(kind)] += 1
        jax.effects_barrier()

    def some(self, least=1):
        return np.arange(self.rng.integers(least, 9), dtype=np.float32)

    def vmap(self):
        xs = np.arange(4, dtype=np.float32) + self.rng.integers(9)
        method = METHODS[self.rng.integers(len(METHODS))]
        np.testing.assert_array_equal(self.vmapped[method](xs), 2 * xs)

    def threads(self):
        xs = np.arange(12, dtype=np.float32)
        np.testing.assert_array_equal(self.spread(xs), 2 * xs)

    def processes(self):
        xs, before = np.arange(6, dtype=np.float32), os.stat(self.tally).st_size
        np.testing.assert_array_equal(self.sent(xs), 2 * xs)
        for _ in range(os.stat(self.tally).st_size - before):
            self.count(f"{self.prefix}sent")

    def error(self):
        try:
            jax.block_until_ready(self.failing(np.arange(5, dtype=np.float32)))
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            assert isinstance(jaxcb.host_error(error), Unlucky), repr(error)
        else:
            raise AssertionError("the error of a host function was not raised")

    def interrupt(self):
        try:
            jax.block_until_ready(self.stopped(np.float32(1)))
        except KeyboardInterrupt:
            return
        raise AssertionError("the KeyboardInterrupt of a host function was not raised")

    def register(self):
        self.register_again()
        x = np.float32(self.rng.integers(9))
        assert self.late(x) == x * np.float32(self.factor)

    def loop(self):
        x = np.float32(self.rng.integers(9))
        assert self.scanned(x, 7) == x + 7

    def buffer(self):
        x = np.arange(6, dtype=np.float32)
        np.testing.assert_array_equal(self.filled(x), 3 * x)

    def tap(self):
        xs = np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(self.taps(xs), 2 * xs)

    def drop_ins(self):
        x = jnp.float32(self.rng.integers(9))
        host = self.plain("plain")
        assert jaxcb.pure_callback(host, x, x) == x + 1
        assert jaxcb.io_callback(host, x, x, ordered=bool(x > 4)) == x + 1
        jaxcb.debug_callback(host, x)

    def jax_callbacks(self):
        x = jnp.float32(self.rng.integers(9))
        host = self.plain("jax")
        assert jax.pure_callback(host, x, x) == x + 1
        assert io_callback(host, x, x) == x + 1
        jax.debug.callback(host, x)

    def plain(self, name):
        """Return always the same function, because JAX compiles eager calls of a new one again."""
        name = self.prefix + name
        if name not in self.scope:

            def add_one(x):
                self.count(name)
                return np.float32(x) + np.float32(1)

            self.scope[name] = named(name, add_one)
        return self.scope[name]

    def nested(self):
        """Check that a recording nested in that of the round has all calls of this thread."""
        before = self.count.now()
        with jaxcb.record() as recorded:
            self.vmap()
            self.loop()
            self.buffer()
        calls = self.count.now() - before
        for name in [name for name in calls if name.startswith(self.prefix)]:
            assert len(recorded.recording.calls_of(name)) == calls[name], name

    def fresh(self):
        """Trace, compile and run a new program once."""
        n = int(self.rng.integers(1, 5))
        callback = self.counted("fresh", "sequential")
        xs = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(jax.jit(lambda x: jax.vmap(callback)(x) + n)(xs), 2 * xs + n)
