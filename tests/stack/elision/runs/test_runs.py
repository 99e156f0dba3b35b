"""Runs are counted for each program of a function, whatever selects the program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS, row = table()


def by_static(a, b):
    """Return a function that uses `a` or `b`, depending on a static argument."""

    def f(x, keep):
        y = a(x)
        z = b(x)
        return y if keep else z

    return f


@row("programs distinguished by a static argument", {"a": "kept 2", "b": "kept 3"})
def _(h):
    f = jax.jit(by_static(h.pure("a"), h.pure("b")), static_argnums=1)
    for keep in (True, False, True, False, False):
        f(X, keep)


@row("programs distinguished by a static keyword", {"a": "kept 2", "b": "kept 1"})
def _(h):
    f = jax.jit(by_static(h.pure("a"), h.pure("b")), static_argnames="keep")
    for keep in (True, False, True):
        f(X, keep=keep)


@row("programs distinguished by weak type", {"a": "kept 3"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: a(x))
    for x in (1.0, jnp.float32(1.0), 2.0):
        f(x)


@row("programs distinguished by the tree of an argument", {"a": "kept 3"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda t: a(t["x"]) if "x" in t else t["y"] * 2)
    for key in ("x", "y", "x", "y", "x"):
        f({key: X})


@row("python scalars and arrays", {"a": "kept 5", "b": "unused 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x, s: (b(x), a(x + s))[1])
    for x, s in ((X, 1), (XS, 2), (X, 3), (XS, 1.5), (X, 1.5)):
        f(x, s)


@row("64-bit arrays that become 32-bit arrays", {"a": "kept 5", "b": "optimized away 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x: a(x) + 0 * b(x))
    for n in (2, 3, 2, 3, 2):
        f(np.arange(n))


@row("an argument that no program uses", {"a": "kept 4", "b": "unused 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x, y: (b(y), a(x))[1])
    for x in (X, XS, X, XS):
        f(x, XS)


@row("only the unused argument changes its shape", {"a": "kept 4", "b": "unused 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x, y: (b(y), a(x))[1])
    for y in (X, XS, X, XS):
        f(X, y)


@row("optimized away for one dtype and kept for another, alternating", {"a": "kept 3"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: x + 0 * a(x))
    for x in (X, X.astype(np.int32), X, X.astype(np.int32), X):
        f(x)


@row("with effects, distinguished by a static argument", {"a": "kept 3", "b": "kept 3"})
def _(h):
    a, b = h.io("a"), h.debug("b")
    f = jax.jit(lambda x, n: (b(x), a(x) * n)[1], static_argnums=1)
    for n in (1, 2, 1):
        f(X, n)


@row("a partial and a bound method", {"a": "kept 3", "b": "kept 3"})
def _(h):
    a, b = h.pure("a"), h.pure("b")

    class Model:
        def step(self, x):
            return a(x)

    f, g = jax.jit(Model().step), jax.jit(functools.partial(lambda s, x: b(x * s), 2))
    for _ in range(3):
        f(X)
        g(X)


@row("one python function jitted twice", {"a": "kept 4", "b": "unused 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    g = lambda x: (b(x), a(x))[1]  # noqa: E731
    f1, f2 = jax.jit(g), jax.jit(g)
    for f in (f1, f2, f1, f2):
        f(X)


@row("one python function jitted with and without donation", {"a": "kept 4"})
def _(h):
    a = h.pure("a")
    g = lambda x: a(x)  # noqa: E731
    f1, f2 = jax.jit(g), jax.jit(g, donate_argnums=0)
    for f in (f1, f2, f1, f2):
        f(jnp.array(X))


@row("a jitted function in an eager vmap, three times", {"a": "kept 12"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: a(x))
    for _ in range(3):
        jax.vmap(f)(XS)


@row("a jitted function in an eager grad, three times", {"a": "kept 3"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: (x * a(lax.stop_gradient(x))).sum())
    for _ in range(3):
        jax.grad(f)(X)


@row("a jitted function alone and in an eager grad", {"a": "kept 6"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: (x * a(lax.stop_gradient(x))).sum())
    for _ in range(3):
        f(X)
        jax.grad(f)(X)


@row("a jitted function alone and inside of another", {"a": "kept 6"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: a(x))
    g = jax.jit(lambda x: f(x) + 1)
    for _ in range(3):
        f(X)
        g(X)


@row("an eager scan three times", {"a": "kept 9", "b": "hoisted 3"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    x = jnp.asarray(X)

    def body(c, _):
        return a(c) + b(x), None

    for _ in range(3):
        lax.scan(body, x, length=3)


@row("an eager cond that takes both branches", {"a": "kept 2", "b": "kept 1"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    for p in (True, False, True):
        lax.cond(jnp.bool_(p), a, b, X)


@row("ahead of time three times, with effects", {"a": "kept 3", "b": "unused 0"})
def _(h):
    a, b = h.io("a"), h.pure("b")
    compiled = jax.jit(lambda x: (b(x), a(x))[1]).lower(X).compile()
    for _ in range(3):
        compiled(X)


@row("ahead of time, elided and never called", {"a": "optimized away 0", "b": "unused 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x: (b(x), jnp.where(False, a(x), x))[1])
    compiled = f.lower(X).compile()
    compiled(X)
    f(X)


@row("ahead of time, then through the jitted function", {"a": "kept 4"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: a(x))
    compiled = f.lower(X).compile()
    for _ in range(2):
        compiled(X)
        f(X)


@row("a branch not taken, ahead of time", {"a": "not reached|not run 0", "b": "kept 1"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    jax.jit(lambda x: lax.cond(x[0] > 9, a, b, x)).lower(X).compile()(X)


@row("a branch with io not taken, ahead of time", {"a": "not reached 0"})
def _(h):
    a = h.io("a")
    jax.jit(lambda x: lax.cond(x[0] > 9, a, lambda y: y, x)).lower(X).compile()(X)


@row("a branch not taken, ahead of time, without effects", {"a": "not reached|unknown 0"})
def _(h):
    a = h.pure("a")
    jax.jit(lambda x: lax.cond(x[0] > 9, a, lambda y: y, x)).lower(X).compile()(X)


@row("a program whose host function fails", {"a": "kept 1", "b": "not reached|not run|kept 0"})
def _(h):
    def fail(x):
        raise KeyError

    a, b = h.pure("a", function=fail), h.pure("b")
    try:
        jax.block_until_ready(jax.jit(lambda x: b(a(x)))(X))
    except jax.errors.JaxRuntimeError:
        pass


@row("a program without our callbacks in an eager grad, beside one with", {"a": "kept 1"})
def _(h):
    jax.block_until_ready(jax.jit(h.pure("a"))(X))
    g = jax.jit(lambda x: x.sum())
    for _ in range(3):
        jax.grad(g)(X)


@row("a program without our callbacks in an eager vmap, beside one with", {"a": "kept 1"})
def _(h):
    jax.block_until_ready(jax.jit(h.pure("a"))(X))
    g = jax.jit(lambda x: x + 1)
    for _ in range(3):
        jax.vmap(g)(X)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def test_runs_are_unknown_if_two_programs_of_a_function_cannot_be_distinguished():
    f = jax.jit(lambda x: (jaxcb.pure_callback(np.sin, x, x), x + 1)[1])
    with jaxcb.record() as r:
        for size in (2, 2, 3, 2, 2, 3):
            f(np.ones(size, np.float32)).block_until_ready()
    assert len(r.recording.outcomes) == 2 and not r.recording.runs
