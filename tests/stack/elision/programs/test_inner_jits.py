"""Jitted functions inside jitted functions: one call kept where the source has two."""

import jax
import numpy as np
from jax import lax

from tests.stack.elision._battery import Hosts, check, each, rows_of, table

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)
ROWS, row = table(X)


def scan(f, length, **options):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=length, **options)[0]


row("an inner jit called with two equal and one different argument", "a deduplicated 2")(
    lambda jit_a: lambda x: jit_a(x) + 2 * jit_a(x) + 3 * jit_a(x + 1)
)
row("both calls of an inner jit are optimized away", "a optimized away 0")(
    lambda jit_a: (lambda x: x + 0 * jit_a(x) + 0 * jit_a(x + 1), (N,))
)
row("an inner jit in an inner jit", "a deduplicated 1")(
    lambda jit_a: lambda x: jax.jit(lambda x: jit_a(x) + 1)(x) * jit_a(x)
)
row("an inner jit called twice in a scan", "a deduplicated 4", known="a")(
    lambda jit_a: scan(lambda c: jit_a(c) + 2 * jit_a(c), 4)
)
row("an inner jit in both branches", "a kept 1")(
    lambda jit_a: lambda x: lax.cond(x[0] > 0, jit_a, lambda y: jit_a(y + 1), x)
)
row("an unrolled loop with an invariant inner jit", "a deduplicated|hoisted 1")(
    lambda jit_a: lambda x: scan(lambda c: c + jit_a(x), 3, unroll=3)(x)
)
row("the same inner jit also outside of the scan", "a kept 5", known="a")(
    lambda jit_a: lambda x: scan(jit_a, 4)(x) + jit_a(x)
)
row("a call in two inner jits in two loops", "a kept 6", known="a")(
    lambda jit_a: scan(jax.jit(scan(jit_a, 2)), 3)
)


@row("one result of an inner jit is not used", "a unused 0, b kept 1", (1, 1))
def _(a, b):
    g = jax.jit(lambda x: (a(x), b(x)))
    return lambda x: g(x)[1]


@row("two lines in an inner jit that is called twice", "a deduplicated 1, b kept 2")
def _(a, b):
    g = jax.jit(lambda x, y: a(x) * b(y))
    return lambda x: g(x, x) + g(x, x + 1)


@row("an inner jit with an invariant call, in a scan under grad", "a hoisted 1", known="a")
def _(a):
    return jax.grad(lambda x: scan(jax.jit(lambda x: x * a(X)), 4)(x).sum())


@row(
    "a batched predicate in an inner jit, in a branch of an inner jit",
    "a kept 2",
    notes={"a": "2 of 3 batch elements reached it"},
)
def _(a):
    inner = jax.jit(lambda x: lax.cond(x > 1, a, lambda x: x, x))
    outer = jax.jit(lambda p, x: lax.cond(p, jax.vmap(inner), lambda x: x, x))
    return lambda p, x: outer(p > 0, x), (X[0], X)


def test_reason_of_an_optimized_away_call_is_not_equal_arguments():
    hosts = Hosts()
    g = jax.jit(hosts.pure("a"))
    rows = rows_of(lambda x: g(x) + 0 * g(x + 1), N)
    assert hosts.calls == {"a": 1}
    assert "equal arguments" not in rows["a"].reason


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
