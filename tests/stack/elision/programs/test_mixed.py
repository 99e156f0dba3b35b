"""Several statuses in one program."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
DEAD = {(2, 0): "optimized away 0", (2, 1): "kept 1"}
ROWS, row = table()


@row(
    "a call hoisted out of a loop that is not entered",
    lambda n: {"a": "hoisted|not reached 1"},
)
def _(h):
    a = h.pure("a")
    return lambda x, n: lax.fori_loop(0, n, lambda i, c: c + a(x), x), (X, np.int32(0))


@row("unused stacked results of a scan", {"a": "unused 0", "b": "kept 4"}, (1, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.scan(lambda c, _: (b(c), a(c)), x, length=4)[0], (X,)


@row("stacked results of which only one is used", {"a": "kept 4"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    return lambda x: lax.scan(lambda c, _: (c + 1, a(c)), x, length=4)[1][-1], (X,)


@row(
    "a while with io whose result is unused",
    {"a": "kept 3", "b": "unused|kept|optimized away 0"},
)
def _(h):
    a, b = h.io("a"), h.pure("b")

    def f(x):
        lax.while_loop(lambda c: c[0] < 4, lambda c: a(c) + 1, x)
        b(x)
        return x

    return f, (X,)


@row("a while without effects whose result is unused", {"a": "unused 0"}, (0, 0))
def _(h):
    a = h.pure("a")

    def f(x):
        lax.while_loop(lambda c: c[0] < 4, lambda c: a(c) + 1, x)
        return x

    return f, (X,)


@row(
    "a call that feeds a debug in a branch not taken", {"a": "kept 1", "b": "not reached 0"}, (2, 2)
)
def _(h):
    a, b = h.pure("a"), h.debug("b")

    def f(x):
        y = a(x)
        lax.cond(x[0] > 9, lambda: b(y), lambda: None)
        return x

    return f, (X,)


@row(
    "a call that feeds a debug in a branch never taken",
    lambda n: (  # XLA of jaxlib 0.10.0 keeps the branch
        {"a": "kept 1", "b": "not reached 0"}
        if n == (2, 2)
        else {"a": DEAD[n], "b": "optimized away 0"}
    ),
)
def _(h):
    a, b = h.pure("a"), h.debug("b")

    def f(x):
        y = a(x)
        lax.cond(False, lambda: b(y), lambda: None)
        return x

    return f, (X,)


@row("a chain in an inner jit called twice", {"a": "deduplicated 1", "b": "deduplicated 1"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    g = jax.jit(lambda x: b(a(x)))
    return lambda x: g(x) - 2 * g(x), (X,)


@row("an inner jit called in either branch and outside", {"a": "kept 2"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x) + lax.cond(x[0] > 0, lambda y: g(y + 1), lambda y: g(y + 2), x), (X,)


@row("ordered io in a scan", {"a": "kept 4", "b": "kept 4"}, known="a b")
def _(h):
    a, b = h.io("a", ordered=True), h.debug("b", ordered=True)
    return lambda x: lax.scan(lambda c, _: (b(c), (a(c), None))[1], x, length=4)[0], (X,)


@row("a remat in a scan under grad", lambda n: {"a": "kept 8" if n[1] == 2 else "kept 4"})
def _(h):
    a = h.pure("a")
    step = jax.checkpoint(lambda c: jnp.sin(c * a(lax.stop_gradient(c))))

    def f(x):
        return lax.scan(lambda c, _: (step(c), None), x, length=4)[0].sum()

    return jax.jit(jax.value_and_grad(f)), (X,)


@row("custom_vjp in a scan under grad", {"a": "unused|absent 0", "b": "kept 4", "c": "kept 4"})
def _(h):
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
    step = jax.custom_vjp(lambda x: a(x))
    step.defvjp(lambda x: (b(x), x), lambda x, ct: (c(x) * ct,))

    def f(x):
        return lax.scan(lambda y, _: (step(y), None), x, length=4)[0].sum()

    return jax.jit(jax.value_and_grad(f)), (X,)


@row("grad of one of two arguments", {"a": "unused|absent 0", "b": "kept 1", "c": "unused 0"})
def _(h):
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
    step = jax.custom_vjp(lambda x, y: a(x) + y)
    step.defvjp(lambda x, y: (b(x) + y, x), lambda x, ct: (c(x) * ct, ct))
    return jax.jit(jax.value_and_grad(lambda y: step(X, y).sum())), (X,)


@row("a scan in reverse", {"a": "kept 4"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    return lambda xs: lax.scan(lambda c, x: (a(c + x), None), X, xs, reverse=True)[0], (XS,)


@row("a scan over rows with one call per row", {"a": "kept 4", "b": "hoisted 1"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda xs, k: lax.scan(lambda c, x: (c + a(x) + b(k), None), X, xs)[0], (XS, X)


@row(
    "hoisted out of the body, elided in the condition",
    lambda n: {"a": "hoisted 1", "b": "optimized away 0" if n[0] == 2 else "unused 0"},
)
def _(h):
    a, b = h.pure("a"), h.pure("b")

    def f(x, n):
        return lax.while_loop(
            lambda c: (b(c[1]), c[0] < n)[1], lambda c: (c[0] + 1, c[1] + a(x)), (0, x)
        )[1]

    return f, (X, np.int32(3))


@row("an invariant call in the condition of a while stays there", {"a": "kept 3"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x, y: lax.while_loop(lambda c: c[0] < a(y)[2], lambda c: c + 1, x), (X, X)


@row("named scopes and named calls", {"a": "kept 1", "b": "unused 0"}, (1, 1), known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")

    def f(x):
        with jax.named_scope("while/body/scope"):
            b(x)
            return jax.named_call(lambda y: a(y), name="cond/branch_1_fun")(x)

    return f, (X,)


@row("custom_linear_solve", {"a": "kept 1", "b": "unused|absent 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")

    def f(x):
        return lax.custom_linear_solve(lambda v: v * 2, x, lambda m, y: a(y), lambda m, y: b(y))

    return f, (X,)


@row(
    "an integer optimized away in batch elements, in a scan, in an inner jit",
    {"a": "optimized away 0"},
)
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: x + 0 * a(x))
    f = lambda xs: lax.scan(lambda c, _: (jax.vmap(g)(c), None), xs, length=3)[0]  # noqa: E731
    return f, (XS.astype(np.int32),)


@row(
    "one line kept in one place and optimized away in another",
    {"a": "kept 1", "a:2": "optimized away 0"},
    (2, 1),
)
def _(h):
    a = h.pure("a")

    def g(x):
        return a(x)

    return lambda x: g(x) + 0 * g(x + 1), (N,)


@row("one line kept in one place and unused in another loop", {"a": "unused 0", "a:2": "kept 4"})
def _(h):
    a = h.pure("a")

    def g(x):
        return a(x)

    def f(x):
        lax.scan(lambda c, _: (g(c), None), x, length=9)
        return lax.scan(lambda c, _: (g(c), None), x, length=4)[0]

    return f, (X,)


@row("one line kept in one loop and hoisted out of another", {"a": "kept 4", "a:2": "hoisted 1"})
def _(h):
    a = h.pure("a")

    def g(x):
        return a(x)

    def f(x, y):
        z = lax.scan(lambda c, _: (g(c), None), x, length=4)[0]
        return lax.scan(lambda c, _: (c + g(y), None), z, length=4)[0]

    return f, (X, X)


@row(
    "closures made in a loop: one line, many functions",
    {"a": "kept 1", "a:2": "kept 1", "a:3": "kept 1"},
    (3, 3),
)
def _(h):
    a = h.pure("a")
    fs = [lambda x, i=i: a(x * i) for i in range(3)]
    return lambda x: fs[0](x) + fs[1](x) + fs[2](x), (X,)


@row(
    "vmap of one line at two batch sizes",
    {"a": "kept 4", "a:2": "kept 3"},
    known="a a:2",
)
def _(h):
    a = h.pure("a")
    g = jax.vmap(lambda x: a(x))
    return lambda x, y: g(x).sum() + g(y).sum(), (XS, X)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def test_deduplicated_call_outside_of_its_loop_is_reported_as_both():
    called = []
    host = jaxcb.pure(lambda x: (called.append(1), x)[1], result=lambda x: x)
    jitted = jax.jit(lambda x: host(x))

    def loop(argument):
        return jax.jit(
            lambda x: lax.fori_loop(
                0, 4, lambda i, v: v + jitted(argument(x, v)) + jitted(argument(x, v)), x
            )
        )

    for argument, calls, outside in ((lambda x, v: x, 1, True), (lambda x, v: v, 4, False)):
        called.clear()
        with jaxcb.record() as seen:
            jax.block_until_ready(loop(argument)(1.0))
        (found,) = summarize(seen.recording)
        assert (str(found.status), found.calls, len(called)) == ("deduplicated", calls, calls)
        assert ("1 call kept outside the loop: " in found.reason) is outside
