"""Loops of length 0, 1 and n, static and dynamic, with calls that XLA or JAX hoists."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)
ROWS, row = table(X)


def scan(f, length):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=length)[0]


def no_turn(counts):
    return "a optimized away 0" if counts[0] else "a unused 0"


row("a scan of length 0 makes no call", no_turn)(lambda a: scan(a, 0))
row("an inner loop of length 0", no_turn)(lambda a: scan(scan(a, 0), 3))
row("nested scans", "a kept 12", (1, 1), known="a")(lambda a: scan(scan(a, 4), 3))
row("one of two calls in a loop is hoisted", "a hoisted 1, b kept 4", (2, 2))(
    lambda a, b: lambda x: scan(lambda c: b(c) + a(x), 4)(x)
)
row("an unused call in a loop", "a unused 0, b kept 4", (1, 1))(
    lambda a, b: scan(lambda c: (a(c), b(c))[1], 4)
)
row("a call hoisted out of both loops", "a hoisted 1", (1, 1), known="a")(
    lambda a: lambda x: scan(scan(lambda d: d + a(x), 4), 3)(x)
)
row("a call hoisted out of an inner loop of length 1", "a kept 3")(
    lambda a: scan(lambda c: scan(lambda d: d + a(c), 1)(c), 3)
)
row("a pure call of the loop index", "a kept 6", (1, 1), known="a")(
    lambda a: (lambda x: lax.fori_loop(0, 6, lambda i, c: c + a(i), x), (N,))
)
row("zero times an integer in a loop", "a optimized away 0", (1, 0))(
    lambda a: (lambda x: lax.fori_loop(0, 4, lambda i, c: c + 0 * a(c + i), x), (N,))
)
row("an invariant call in a loop of unknown length", "a hoisted 1", (1, 1))(
    lambda a: (lambda x, n: lax.fori_loop(0, n, lambda i, c: c + a(x), x), (X, np.int32(3)))
)

for outer, inner, status in ((1, 3, "hoisted 1"), (3, 1, "kept 3"), (1, 1, "kept 1")):
    # XLA keeps these loops, and knows the length of none: they carry only a counter.
    @row(
        f"a call hoisted out of a scan of length {inner} in one of length {outer}",
        f"a {status}, b kept {outer * inner}",
        (2, 2),
    )
    def _(h, a, outer=outer, inner=inner):
        b = h.debug("b")

        def body(c, y):
            lax.map(lambda _: b(a(y)), jnp.arange(inner))
            return c, None

        return lambda x: lax.scan(body, x, jnp.arange(float(outer)))[0]


@row("a call is hoisted, and its other call path is unused", "a fewer 1")
def _(a):
    a = jax.jit(a)
    return lambda x: (a(x * 3), scan(lambda c: c + a(x), 5)(x))[1]


@row("a scan outside of jit with an unused call", "a unused|optimized away 0", ran=True)
def _(a):
    scan(lambda c: (a(c), c + 1)[1], 3)(X)


@row("a scan with jit disabled", "a kept 3", ran=True)
def _(a):
    with jax.disable_jit():
        scan(a, 3)(X)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
