"""Loops of length 0, 1 and n, static and dynamic, with calls that XLA or JAX hoists."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS, row = table()


@row("a scan makes one call per iteration", {"a": "kept 5"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    return lambda x: lax.scan(lambda c, _: (a(c), None), x, length=5)[0], (X,)


@row("a scan of length 1 makes one call", {"a": "kept 1", "b": "kept 1"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.scan(lambda c, _: (a(c) + b(x), None), x, length=1)[0], (X,)


@row(
    "a scan of length 0 makes no call",
    lambda n: {"a": "unused 0" if not n[0] else "optimized away 0"},
)
def _(h):
    a = h.pure("a")
    return lambda x: lax.scan(lambda c, _: (a(c), None), x, length=0)[0], (X,)


@row(
    "a scan of length 0 makes no io call",
    lambda n: dict.fromkeys("ab", "unused 0" if not n[0] else "optimized away 0"),
)
def _(h):
    a, b = h.io("a"), h.debug("b")

    def body(c, _):
        b(c)
        return a(c), None

    return lambda x: lax.scan(body, x, length=0)[0], (X,)


@row("a loop-invariant pure call is made once", {"a": "hoisted 1"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    return lambda x: lax.scan(lambda c, _: (c + a(x), None), x, length=5)[0], (X,)


@row("a loop-invariant io call stays in the loop", {"a": "kept 5"}, (1, 1), known="a")
def _(h):
    a = h.io("a")
    return lambda x: lax.scan(lambda c, _: (c + a(x), None), x, length=5)[0], (X,)


@row("a loop-invariant debug call stays in the loop", {"a": "kept 5"}, (1, 1), known="a")
def _(h):
    a = h.debug("a")
    return lambda x: lax.scan(lambda c, _: ((a(x), c + 1)[1], None), x, length=5)[0], (X,)


@row("one of two calls in a loop is hoisted", {"a": "hoisted 1", "b": "kept 4"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.scan(lambda c, _: (b(c) + a(x), None), x, length=4)[0], (X,)


@row("a call on a constant in a loop is not hoisted by XLA", {"a": "kept 6"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x: lax.fori_loop(0, 6, lambda i, c: c + a(jnp.ones(3)), x), (X,)


@row("a pure call of the loop index", {"a": "kept 6"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    return lambda x: lax.fori_loop(0, 6, lambda i, c: c + a(i), x), (N,)


@row("an unused call in a loop", {"a": "unused 0", "b": "kept 4"}, (1, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.scan(lambda c, _: (a(c), (b(c), None))[1], x, length=4)[0], (X,)


@row("a carry that is not needed after the loop", {"a": "unused 0", "b": "kept 4"}, (1, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")

    def body(c, _):
        y, z = c
        return (a(y), b(z)), None

    return lambda x: lax.scan(body, (x, x), length=4)[0][1], (X,)


@row("zero times an integer in a loop", {"a": "optimized away 0"}, (1, 0))
def _(h):
    a = h.pure("a")
    return lambda x: lax.fori_loop(0, 4, lambda i, c: c + 0 * a(c + i), x), (N,)


@row("zero times a float in a loop", {"a": "kept 4"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x: lax.fori_loop(0, 4, lambda i, c: c + 0 * a(c + i), x), (X,)


@row("fori_loop whose length is an argument", {"a": "kept 3"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x, n: lax.fori_loop(0, n, lambda i, c: a(c), x), (X, np.int32(3))


@row("fori_loop whose length is an argument that is 0", {"a": "not reached 0"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x, n: lax.fori_loop(0, n, lambda i, c: a(c), x), (X, np.int32(0))


@row("an invariant call in a loop of unknown length", lambda n: {"a": "hoisted 1"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x, n: lax.fori_loop(0, n, lambda i, c: c + a(x), x), (X, np.int32(3))


@row("while whose condition depends on data", {"a": "kept 3"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: a(c) + 1, x), (X,)


@row("while whose condition is false at once", {"a": "not reached 0", "b": "not reached 0"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.debug("b")

    def body(c):
        b(c)
        return a(c) + 1

    return lambda x: lax.while_loop(lambda c: c[0] > 9, body, x), (X,)


@row("a call in the condition of a while runs once more than the body", {"a": "kept 4"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x: lax.while_loop(lambda c: a(c)[0] < 4, lambda c: c + 1, x), (X,)


@row("a call in a condition that is false at once", {"a": "kept 1", "b": "not reached 0"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.while_loop(lambda c: a(c)[0] > 9, lambda c: b(c) + 1, x), (X,)


@row("nested scans", {"a": "kept 12"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")

    def outer(c, _):
        return lax.scan(lambda d, _: (a(d), None), c, length=4)[0], None

    return lambda x: lax.scan(outer, x, length=3)[0], (X,)


@row("a call hoisted out of the inner of two loops", {"a": "hoisted 3"}, (1, 1))
def _(h):
    a = h.pure("a")

    def outer(c, _):
        return lax.scan(lambda d, _: (d + a(c), None), c, length=4)[0], None

    return lambda x: lax.scan(outer, x, length=3)[0], (X,)


@row("a call hoisted out of both loops", {"a": "hoisted 1"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")

    def f(x, y):
        def outer(c, _):
            return lax.scan(lambda d, _: (d + a(y), None), c, length=4)[0], None

        return lax.scan(outer, x, length=3)[0]

    return f, (X, X)


@row("a call hoisted out of an inner loop of length 1", {"a": "kept 3"})
def _(h):
    a = h.pure("a")

    def outer(c, _):
        return lax.scan(lambda d, _: (d + a(c), None), c, length=1)[0], None

    return lambda x: lax.scan(outer, x, length=3)[0], (X,)


for outer, inner, status in ((1, 3, "hoisted 1"), (3, 1, "kept 3"), (1, 1, "kept 1")):
    # XLA keeps these loops, and knows the length of none: they carry only a counter.
    @row(
        f"a call hoisted out of a scan of length {inner} in one of length {outer}",
        {"a": status, "b": f"kept {outer * inner}"},
        (2, 2),
    )
    def _(h, outer=outer, inner=inner):
        a, b = h.pure("a"), h.debug("b")

        def body(c, y):
            lax.map(lambda _: b(a(y)), jnp.arange(inner))
            return c, None

        return lambda x: lax.scan(body, x, jnp.arange(float(outer)))[0], (X,)


@row("an inner loop of length 0", lambda n: {"a": "unused 0" if not n[0] else "optimized away 0"})
def _(h):
    a = h.pure("a")

    def outer(c, _):
        return lax.scan(lambda d, _: (a(d), None), c, length=0)[0], None

    return lambda x: lax.scan(outer, x, length=3)[0], (X,)


@row("lax.map makes one call per element", {"a": "kept 4"}, known="a")
def _(h):
    a = h.pure("a")
    return lambda xs: lax.map(a, xs), (XS,)


@row("lax.map in batches makes one call per element", {"a": "kept 4"})
def _(h):
    a = h.pure("a")
    return lambda xs: lax.map(a, xs, batch_size=2), (XS,)


@row("an unrolled scan makes one call per iteration", {"a": "kept 4"}, known="a")
def _(h):
    a = h.pure("a")
    return lambda x: lax.scan(lambda c, _: (a(c), None), x, length=4, unroll=4)[0], (X,)


@row("a scan of length 5 unrolled by 2", {"a": "kept 5", "b": "kept 5"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.debug("b")

    def body(c, _):
        b(c)
        return a(c), None

    return lambda x: lax.scan(body, x, length=5, unroll=2)[0], (X,)


@row("fori_loop unrolled, with debug", {"a": "kept 3"}, known="a")
def _(h):
    a = h.debug("a")
    return lambda x: lax.fori_loop(0, 3, lambda i, c: (a(i), c)[1], x, unroll=True), (X,)


@row("associative_scan makes one call per combination", lambda n: {"a": f"kept {n[1]}"})
def _(h):
    a = h.pure("a")
    return lambda x: lax.associative_scan(lambda p, q: p + a(q), x), (X,)


@row("a scan outside of jit", {"a": "kept 3"})
def _(h):
    a = h.pure("a")
    lax.scan(lambda c, _: (a(c), None), X, length=3)


@row("a scan outside of jit with an invariant call", {"a": "hoisted 1"})
def _(h):
    a = h.pure("a")
    x = jnp.asarray(X)
    lax.scan(lambda c, _: (c + a(x), None), X, length=3)


@row("a python loop outside of jit", {"a": "kept 3"})
def _(h):
    a = h.pure("a")
    for i in range(3):
        a(X + i)


@row("a scan outside of jit with an unused call", {"a": "unused|optimized away 0"})
def _(h):
    a = h.pure("a")
    lax.scan(lambda c, _: ((a(c), c + 1)[1], None), X, length=3)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def test_loop_runs_in_python_if_jit_is_disabled():
    ran, add = table()

    @add("a scan with jit disabled", {"a": "kept 3"})
    def _(h):
        a = h.pure("a")
        with jax.disable_jit():
            lax.scan(lambda c, _: (a(c), None), X, length=3)

    check(ran[0])
