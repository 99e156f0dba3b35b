"""Programs that are compiled ahead of time or run several times, and several of one function."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS, row = table()


@row("make_jaxpr, eval_shape and trace leave no site", {})
def _(h):
    a, b, c = (h.pure(name) for name in "abc")
    jax.make_jaxpr(lambda x: (a(x), x)[1])(X)
    jax.eval_shape(b, X)
    jax.jit(c).trace(X)


@row("a program that is only lowered leaves no site", {})
def _(h):
    a, b = h.pure("a"), h.io("b")
    jax.jit(lambda x: a(x) + b(x)).lower(X)


@row("a program that is only lowered, with an unused call, leaves no site", {})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    jax.jit(lambda x: (a(x), jnp.where(False, b(x), x))[1]).lower(X).as_text()


@row("compiled ahead of time and not run", dict.fromkeys("abc", "not run 0"), known="a b c")
def _(h):
    a, b, c = h.pure("a"), h.io("b"), h.debug("c")
    jax.jit(lambda x: (c(x), a(x) + b(x))[1]).lower(X).compile()


@row("compiled and not run, with a loop and a branch", {"a": "not run 0", "b": "not run 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")

    def f(x):
        y = lax.scan(lambda c, _: (a(c), None), x, length=3)[0]
        return lax.cond(x[0] > 0, b, lambda z: z, y)

    jax.jit(f).lower(X).compile()


@row("compiled and not run, elided", {"a": "unused 0", "b": "optimized away 0", "c": "not run 0"})
def _(h):
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
    jax.jit(lambda x: (a(x), jnp.where(False, b(x), c(x)))[1]).lower(X).compile()


@row("compiled and not run, under vmap", {"a": "not run 0"})
def _(h):
    jax.jit(jax.vmap(h.pure("a"))).lower(XS).compile()


@row("compiled ahead of time and run twice", {"a": "kept 2", "b": "unused 0"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    compiled = jax.jit(lambda x: (b(x), a(x))[1]).lower(X).compile()
    compiled(X)
    compiled(X + 1)


@row("only one of two programs is run", {"a": "kept 1", "b": "not run 0"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    jax.jit(b).lower(X).compile()
    jax.jit(a)(X)


@row("one function compiled for two shapes, one of them run", {"a": "kept 1"}, known="a")
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: a(x))
    f.lower(X).compile()
    f(XS)


@row("a program that is run three times", {"a": "kept 3", "b": "optimized away 0"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x: jnp.where(False, b(x), a(x)))
    for _ in range(3):
        f(X)


@row("a loop that is run three times", {"a": "kept 12", "b": "hoisted 3"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x: lax.scan(lambda c, _: (a(c) + b(x), None), x, length=4)[0])
    for _ in range(3):
        f(X)


@row("a branch that only the third run takes", {"a": "kept 1", "b": "kept 2"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x: lax.cond(x[0] > 2, a, b, x))
    for i in range(3):
        f(X + i / 1.5)


@row("one function at three shapes", {"a": "kept 3", "b": "unused 0"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x: (b(x), a(x))[1])
    for shape in ((3,), (4,), (2, 2)):
        f(np.ones(shape, np.float32))


@row("optimized away for integers, kept for floats", {"a": "kept 1"})
def _(h):
    a = h.pure("a")
    f = jax.jit(lambda x: x + 0 * a(x))
    f(X)
    f(X.astype(np.int32))


@row("a static argument decides whether a call is unused", {"a": "kept 2"}, known="a")
def _(h):
    a = h.pure("a")

    def f(x, n):
        y = a(x)
        return x if n else y

    f = jax.jit(f, static_argnums=1)
    for n in (0, 1, 0):
        f(X, n)


@row("donated arguments", {"a": "kept 2", "b": "unused 0"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x: (b(x), a(x) + 1)[1], donate_argnums=0)
    f(f(jnp.asarray(X)))


@row("outside of jit", dict.fromkeys("abc", "kept 1"))
def _(h):
    a, b, c = h.pure("a"), h.io("b"), h.debug("c")
    a(X)
    b(X)
    c(X)


@row("outside of jit on one line, and in a program", {"a@1": "kept 1", "a@2": "kept 1"})
def _(h):
    a = h.pure("a")
    a(X)  # @1
    jax.jit(lambda x: a(x))(X)  # @2


@row("x64", {"a": "optimized away 0", "b": "kept 1", "c": "unused 0", "d": "hoisted 1"})
def _(h):
    a, b, c, d = (h.pure(name) for name in "abcd")

    def f(x, y):
        c(y)
        loop = lax.fori_loop(0, 3, lambda i, z: z + d(y), y)
        return x + 0 * a(x), b(y) + loop

    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        jax.jit(f)(np.arange(3), np.arange(3.0))


@row("clear_caches makes a function another program", {"a": "kept 2", "b": "unused 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = jax.jit(lambda x: (b(x), a(x))[1])
    f(X)
    jax.clear_caches()
    f(X)


@row("a program that uses the result of another one", {"a": "kept 1", "b": "kept 1"}, known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    y = jax.jit(lambda x: a(x))(X)
    jax.jit(lambda x: b(x))(y)


@row("jit of a constant function", {"a": "kept 1"})
def _(h):
    a = h.pure("a")
    return lambda: a(X), ()


@row("an argument that is not used", {"a": "kept 1", "b": "unused 0"}, (1, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x, y: (b(y), a(x))[1], (X, XS)


@row("a call of a program that fails while it is traced is unknown", {"a": "unknown 0"})
def _(h):
    a = h.pure("a")

    def f(x):
        a(x)
        raise KeyError

    try:
        jax.jit(f)(X)
    except KeyError:
        pass


@row("with jit disabled a python program runs", {"a": "kept 1", "b": "kept 1"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    with jax.disable_jit():
        jax.jit(lambda x: (a(x), b(x))[1])(X)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
