"""A function reached by several call paths in one program: each count is exact, or unknown.

The expected counts are those of the host functions, and the sums of counts given for each path.
"""

import collections
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize

pytestmark = pytest.mark.slow

X = np.float32(1.5)


def stack(x, count):
    return jnp.arange(count, dtype=jnp.float32) + x


def scan(length):
    return lambda g: lambda x: lax.scan(lambda c, _: (g(c) + 1, None), x, length=length)[0]


def vmap(size):
    return lambda g: lambda x: jax.vmap(g)(stack(x, size)).sum()


def loop_while(g):
    return lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, g(c[1]) + 1), (0, x))[
        1
    ]


def branch(x_is_more_than):
    return lambda g: lambda x: lax.cond(x > x_is_more_than, g, lambda x: x, x)


def derivative(g):
    """Return a function with a custom rule that calls `g` forwards and backwards."""
    rule = jax.custom_vjp(lambda x: x)
    rule.defvjp(lambda x: (g(x), x), lambda x, ct: (g(x + 5) * ct,))
    return lambda x: sum(jax.value_and_grad(rule)(x))


# For each name: a transformation of a function of a number, and its host calls in one run.
PATHS = {
    "plainly": (lambda g: g, 1),
    "twice": (lambda g: lambda x: g(x) + g(x + 3), 2),
    "vmap of 2": (vmap(2), 2),
    "vmap of 3": (vmap(3), 3),
    "vmap of none": (vmap(0), 0),
    "scan of 4": (scan(4), 4),
    "scan of 1": (scan(1), 1),
    "scan of 0": (scan(0), 0),
    "fori_loop of 5": (lambda g: lambda x: lax.fori_loop(0, 5, lambda i, c: g(c) + 1, x), 5),
    "while, 3 times": (loop_while, 3),
    "branch taken": (branch(-1e9), 1),
    "branch not taken": (branch(1e9), 0),
    "inner jit": (lambda g: jax.jit(lambda x: g(x) + 1), 1),
    "checkpoint": (lambda g: jax.checkpoint(lambda x: g(x) + 1), 1),
    "derivative": (derivative, 2),
    "this platform": (lambda g: lambda x: lax.platform_dependent(x, cpu=g, default=jnp.cos), 1),
    "another platform": (lambda g: lambda x: lax.platform_dependent(x, tpu=g, default=g), 1),
}
DATA = {"while, 3 times", "branch taken", "branch not taken"}
# Host calls under vmap if one call takes the whole batch.
BATCHED = {"vmap of 2": 1, "vmap of 3": 1}


def count_of(uses, batched=False):
    """Return the host calls of one run; each use is a nesting of paths, outermost first."""
    each = {name: BATCHED.get(name, n) if batched else n for name, (_, n) in PATHS.items()}
    return sum(int(np.prod([each[name] for name in use])) for use in uses)


def flavors(host):
    """Return callbacks of `host` by the name of their flavor."""

    def shown(x):
        host(x)

    shown.__name__ = host.__name__
    debug = jaxcb.debug(shown)
    return {
        "pure": jaxcb.pure(host, result="x", vmap_method="sequential"),
        "batched": jaxcb.pure(host, result="x", vmap_method="expand_dims"),
        "io": jaxcb.io(host, result="x"),
        "debug": lambda x: (debug(x), x)[1],
        "jax pure": lambda x: jax.pure_callback(host, x, x, vmap_method="sequential"),
        "jax batched": lambda x: jax.pure_callback(host, x, x, vmap_method="expand_dims"),
        "jax io": lambda x: io_callback(host, x, x),
        "jax debug": lambda x: (jax.debug.callback(shown, x), x)[1],
    }


class Rows(list):
    """The rows of a host function, one for each line that calls the helper around it."""

    @classmethod
    def by_function(cls, recording):
        found = {}
        for row in summarize(recording):
            found.setdefault(row.site.function, cls()).append(row)
        return found

    @property
    def calls(self):
        return sum(row.calls for row in self)

    @property
    def expected(self):
        """The expected host calls of all rows, or None if they are unknown for some row."""
        each = [row.expected for row in self]
        return None if None in each else sum(each)

    @property
    def statuses(self):
        return {str(row.status) for row in self}


class Program:
    """Call a function by each of `uses`, and another function once; count calls in the host."""

    def __init__(self, uses, flavor="pure", jitted=True):
        self.calls, self._lock = collections.Counter(), threading.Lock()
        a = flavors(self._host("a"))[flavor]
        b = jaxcb.io(self._host("b"), result="x")

        def once(x):
            return a(x) * 2

        g = jax.jit(once) if jitted else once

        def program(x):
            y = x
            for number, use in enumerate(uses):
                call = g
                for name in reversed(use):
                    call = PATHS[name][0](call)
                y = y + call(y + number)
            return y + b(x)

        self.jitted = jax.jit(program)

    def _host(self, name):
        def host(x):
            with self._lock:
                self.calls[name] += 1
            return np.asarray(x)

        host.__name__ = name
        return host

    def ahead(self):
        """Return the rows of `explain` by host function."""
        with jaxcb.observe_jax():
            recording = jaxcb.explain(self.jitted)(X)
        assert not self.calls
        return Rows.by_function(recording)

    def run(self, runs=1):
        """Return the rows of a recording by host function."""
        with jaxcb.observe_jax() as r:
            for _ in range(runs):
                jax.block_until_ready(self.jitted(X))
                jax.effects_barrier()
        return Rows.by_function(r.recording)


def check(uses, flavor, *, jitted, runs):
    program = Program(uses, flavor, jitted)
    ahead, ran = program.ahead(), program.run(runs)
    known = not DATA.intersection(*[[name for use in uses for name in use]])
    for name in ("a", "b"):
        calls, found = program.calls[name], ran.get(name)
        assert found is not None or not calls
        if found is None:
            continue
        assert found.calls == calls
        assert found.expected in (calls, None), name
        assert ahead[name].expected in (calls // runs, None), name
        if known or name == "b":
            assert found.expected == calls
    written = count_of(uses, "batched" in flavor)
    if ran["a"].calls >= written * runs:
        assert not ran["a"].statuses & {"deduplicated", "hoisted"}, [row.reason for row in ran["a"]]


@pytest.mark.parametrize(
    ("flavor", "path"),
    [
        (flavor, path)
        # Every path for the first flavor, and every second path for the others.
        for number, flavor in enumerate(
            ("pure", "io", "debug", "batched", "jax pure", "jax batched")
        )
        for place, path in enumerate(PATHS)
        if number == 0 or (place + number) % 2 == 0
        # The data decide how often paths in DATA run, and JAX refuses io effects in a checkpoint.
        if path not in DATA and (flavor, path) != ("io", "checkpoint")
    ],
)
def test_calls_of_a_direct_path_and_another_path_add_up(flavor, path):
    check([["plainly"], [path]], flavor, jitted=True, runs=2)


def test_calls_made_directly_and_under_vmap_are_predicted_exactly():
    program = Program([["plainly"], ["vmap of 3"]])
    assert {name: rows.expected for name, rows in program.ahead().items()} == {"a": 4, "b": 1}
    ran = program.run()
    assert program.calls == {"a": 4, "b": 1}
    for name, calls in program.calls.items():
        (row,) = ran[name]
        assert (row.calls, row.expected, row.written) == (calls,) * 3
        assert str(row.status) == "kept"


use = st.lists(st.sampled_from(sorted(PATHS)), min_size=1, max_size=2)


@settings(max_examples=15, deadline=None)
@given(
    uses=st.lists(use, min_size=1, max_size=4),
    flavor=st.sampled_from(["pure", "batched", "io", "debug", "jax pure", "jax batched"]),
    jitted=st.booleans(),
    runs=st.integers(1, 2),
)
def test_counts_are_right_for_random_call_paths(uses, flavor, jitted, runs):
    if flavor == "io":
        uses = [[name for name in use if name != "checkpoint"] or ["plainly"] for use in uses]
    check(uses, flavor, jitted=jitted, runs=runs)


@pytest.mark.parametrize("path", ["scan of 0", "vmap of none", "another platform"])
@pytest.mark.parametrize("flavor", ["pure", "io", "debug"])
def test_path_that_no_run_takes_is_not_reported_as_missing(path, flavor):
    program = Program([["plainly"], [path]], flavor)
    (found,) = program.run()["a"]
    assert found.calls == program.calls["a"] == count_of([["plainly"], [path]])
    assert (str(found.status), found.reason, found.elided) == ("kept", "", 0)


def test_each_path_that_no_run_takes_has_a_reason():
    for path, words in (
        ("scan of 0", "a loop of length 0"),
        ("vmap of none", "an axis of size 0"),
    ):
        (found,) = Program([[path]]).run()["a"]
        assert (found.calls, found.expected) == (0, 0)
        assert words in found.reason


def test_expected_calls_include_eager_calls_of_the_same_site():
    calls = []
    host = jaxcb.pure(lambda x: (calls.append(1), x)[1], result="x")

    def run():
        for call in (host, jax.jit(host)):  # one line, eagerly and in a program
            for _ in range(2 + (call is host)):
                jax.block_until_ready(call(X))

    with jaxcb.record() as r:
        thread = threading.Thread(target=run)  # no caller distinguishes the two
        thread.start()
        thread.join()
    (found,) = summarize(r.recording)
    assert (found.calls, found.expected, found.written) == (len(calls),) * 3 == (5,) * 3
