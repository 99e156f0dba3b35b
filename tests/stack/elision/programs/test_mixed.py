"""Several statuses in one program, and straight-line programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS, row = table(X)


def scan(f, length):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=length)[0]


row("one line reached twice, with one result unused", "a kept 1", (1, 1))(
    lambda a: lambda x: [a(x + i) for i in range(2)][1]
)
row("jit of a constant function", "a kept 1")(lambda a: (lambda: a(X), ()))
row("a while without effects whose result is unused", "a unused 0", (0, 0))(
    lambda a: lambda x: (lax.while_loop(lambda c: c[0] < 4, lambda c: a(c) + 1, x), x)[1]
)


@row("a remat in a scan under grad", lambda n: "a kept 8" if n[1] == 2 else "a kept 4")
def _(a):
    step = jax.checkpoint(lambda c: jnp.sin(c * a(lax.stop_gradient(c))))
    return jax.value_and_grad(lambda x: scan(step, 4)(x).sum())


@row(
    "hoisted out of the body, elided in the condition",
    lambda n: f"a hoisted 1, b {'optimized away' if n[0] == 2 else 'unused'} 0",
)
def _(a, b):
    def f(x, n):
        goes_on = lambda c: (b(c[1]), c[0] < n)[1]  # noqa: E731
        return lax.while_loop(goes_on, lambda c: (c[0] + 1, c[1] + a(x)), (0, x))[1]

    return f, (X, np.int32(3))


def iterate(n, f, x):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]


@row("in a while that XLA removes, beside one of the same name", "a unknown 1")
def _(a):
    return lambda x: iterate(x[0].astype(int), lambda c: 2 * c, iterate(1, a, x))


@row("hoisted out of a while, beside one of the same name that XLA removes", "a hoisted 1")
def _(a):
    return lambda x: iterate(
        1, lambda c: 2 * c, iterate(2 + x[0].astype(int), lambda c: c + a(x), x)
    )


@row("custom_linear_solve", "a kept 1, b unused|absent 0")
def _(a, b):
    solve, transposed = lambda m, y: a(y), lambda m, y: b(y)
    return lambda x: lax.custom_linear_solve(lambda v: v * 2, x, solve, transposed)


@row("an integer optimized away in batch elements, a scan, an inner jit", "a optimized away 0")
def _(a):
    g = jax.jit(lambda x: x + 0 * a(x))
    return scan(lambda c: jax.vmap(g)(c), 3), (XS.astype(np.int32),)


@row("one line kept in one place and unused in another loop", "a unused 0, a:2 kept 4")
def _(a):
    def g(x):
        return a(x)

    def f(x):
        lax.scan(lambda c, _: (g(c), None), x, length=9)
        return lax.scan(lambda c, _: (g(c), None), x, length=4)[0]

    return f


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


@pytest.mark.parametrize(
    ("argument", "status", "calls"),
    [(lambda x, v: x, "fewer", 1), (lambda x, v: v, "deduplicated", 4)],
    ids=["hoisted", "in its loop"],
)
def test_deduplicated_call_outside_of_its_loop_is_reported_as_both(argument, status, calls):
    rows, row = table(np.float32(1))

    @row("", f"a {status} {calls}")
    def _(a):
        g = jax.jit(lambda x: a(x))
        twice = lambda x, v: g(argument(x, v)) + g(argument(x, v))  # noqa: E731
        return lambda x: lax.fori_loop(0, 4, lambda i, v: v + twice(x, v), x)

    found = check(rows[0])
    assert ("moved calls out of loops" in found["a"].reason) is (status == "fewer")


@pytest.mark.parametrize("flavor", [jaxcb.io(result=None), jaxcb.debug()], ids=["io", "debug"])
def test_call_of_a_constant_in_an_unused_checkpoint_is_made_as_in_jax_or_reported(flavor):
    def made(call):
        def checkpointed(x):
            call(np.float32(1))
            return jnp.sin(x)

        seen.clear()
        jax.jit(lambda x: (jax.checkpoint(checkpointed)(x), x * 2)[1])(X).block_until_ready()
        jax.effects_barrier()
        return len(seen)

    seen = []
    theirs = made(lambda x: jax.debug.callback(seen.append, x))
    with jaxcb.record() as r:
        assert made(flavor(seen.append)) == theirs
    (found,) = summarize(r.recording)
    assert (found.calls, str(found.status)) == (theirs, "kept" if theirs else "unused")
    assert ("jax.checkpoint" in found.reason) == (not theirs)
    assert ("outside of the checkpointed function" in found.advice) == (not theirs)
