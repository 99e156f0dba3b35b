"""A function reached by several call paths in one program: each count is exact, or unknown.

The expected counts are those of the host functions, and the sums of counts given for each path.
tests/programs has random programs with such paths.
"""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import Hosts

pytestmark = pytest.mark.slow

X = np.float32(1.5)


def scan(length):
    return lambda g: lambda x: lax.scan(lambda c, _: (g(c) + 1, None), x, length=length)[0]


def vmap(size):
    return lambda g: lambda x: jax.vmap(g)(jnp.arange(size, dtype=jnp.float32) + x).sum()


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
    "vmap of none": (vmap(0), 0),
    "scan of 4": (scan(4), 4),
    "scan of 1": (scan(1), 1),
    "scan of 0": (scan(0), 0),
    "fori_loop of 5": (lambda g: lambda x: lax.fori_loop(0, 5, lambda i, c: g(c) + 1, x), 5),
    "inner jit": (lambda g: jax.jit(lambda x: g(x) + 1), 1),
    "checkpoint": (lambda g: jax.checkpoint(lambda x: g(x) + 1), 1),
    "derivative": (derivative, 2),
    "this platform": (lambda g: lambda x: lax.platform_dependent(x, cpu=g, default=jnp.cos), 1),
    "another platform": (lambda g: lambda x: lax.platform_dependent(x, tpu=g, default=g), 1),
}
# One call takes the whole batch of a batched flavor.
BATCHED = {"vmap of 2": 1}
NEVER = ("scan of 0", "vmap of none", "another platform")


def flavors(h):
    """Return callbacks by the name of their flavor, which count their calls in `h`."""
    host, shown = h.host("a"), h.host("a", lambda *xs: None)
    return {
        "pure": h.pure("a"),
        "io": h.io("a"),
        "debug": h.of_kind("debug"),
        "batched": h.pure("a", vmap_method="expand_dims"),
        "jax pure": lambda x: jax.pure_callback(host, x, x, vmap_method="sequential"),
        "jax batched": lambda x: jax.pure_callback(host, x, x, vmap_method="expand_dims"),
        "jax io": lambda x: io_callback(host, x, x),
        "jax debug": lambda x: (jax.debug.callback(shown, x), x)[1],
    }


@pytest.mark.parametrize(
    ("flavor", "path"),
    [
        (flavor, path)
        # Every path for the first flavors, and every second path for the others.
        for number, flavor in enumerate(flavors(Hosts()))
        for place, path in enumerate(PATHS)
        if (number < 3 and path in NEVER)
        or number == 0
        or path in BATCHED
        or (place + number) % 2 == 0
        # JAX refuses io effects in a checkpoint, a derivative and vmap.
        if not ("io" in flavor and path in ("checkpoint", "derivative"))
    ],
)
def test_calls_of_a_direct_path_and_another_path_add_up(flavor, path):
    h, runs = Hosts(), 2
    a, b = flavors(h)[flavor], h.io("b")
    g = jax.jit(lambda x: a(x) * 2)
    other, calls = PATHS[path]
    calls = 1 + (BATCHED.get(path, calls) if "batched" in flavor else calls)

    @jax.jit
    def program(x):
        direct = g(x)
        return x + direct + other(g)(x + 1) + b(x)

    with jaxcb.observe_jax():
        ahead = summarize(jaxcb.explain(program)(X))
    assert not h.calls
    with jaxcb.observe_jax() as r:
        for _ in range(runs):
            jax.block_until_ready(program(X))
            jax.effects_barrier()
    ran = summarize(r.recording)
    for name in ("a", "b"):
        rows = [row for row in ran if row.site.function == name]
        expected = [row.expected for row in ahead if row.site.function == name]
        assert sum(row.calls for row in rows) == sum(row.expected for row in rows) == h.calls[name]
        assert None in expected or sum(expected) == h.calls[name] / runs
        if h.calls[name] >= calls * runs:
            assert {str(row.status) for row in rows} == {"kept"}
            assert [(row.reason, row.elided) for row in rows] == [("", 0)] * len(rows)
    assert h.calls["a"] <= calls * runs and h.calls["b"] == runs


@pytest.mark.parametrize(
    ("path", "words"),
    [("scan of 0", "a loop of length 0"), ("vmap of none", "an axis of size 0")],
)
def test_path_that_no_run_takes_has_a_reason(path, words):
    program = jax.jit(PATHS[path][0](Hosts().pure("a")))
    with jaxcb.record() as r:
        program(X).block_until_ready()
    (found,) = summarize(r.recording)
    assert (found.calls, found.expected) == (0, 0)
    assert words in found.reason


def test_expected_calls_include_eager_calls_of_the_same_site():
    h = Hosts()
    host = h.pure("a")

    def run():
        for call in (host, host, host, jax.jit(host), jax.jit(host)):
            call(X).block_until_ready()

    with jaxcb.record() as r:
        thread = threading.Thread(target=run)  # no caller distinguishes the calls
        thread.start()
        thread.join()
    (found,) = summarize(r.recording)
    assert (found.calls, found.expected, found.written) == (h.calls["a"],) * 3 == (5,) * 3
