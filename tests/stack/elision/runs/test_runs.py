"""Runs are counted for each program of a function, whatever selects the program, and how it ran."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
N = X.astype(np.int32)
ROWS, row = table()
ran = functools.partial(row, ran=True)


def run(f, *arguments):
    """Call `f` with each of `arguments`, which are single ones or tuples."""
    for args in arguments:
        jax.block_until_ready(f(*args) if isinstance(args, tuple) else f(args))


def compiled(f, *args):
    return jax.jit(f).lower(*args).compile()


def unused(b, a):
    return lambda x, y: (b(y), a(x))[1]


def by_static(a, b):
    """Return a function that uses `a` or `b`, depending on a static argument."""

    def f(x, keep):
        y = a(x)
        z = b(x)
        return y if keep else z

    return f


def loss(a):
    return jax.jit(lambda x: (x * a(lax.stop_gradient(x))).sum())


class Model:
    def __init__(self, a):
        self.a = a

    def step(self, x):
        return self.a(x)


# What selects the program.
ran("a static argument", "a kept 2, b kept 3")(
    lambda a, b: run(
        jax.jit(by_static(a, b), static_argnums=1), (X, 1), (X, 0), (X, 1), (X, 0), (X, 0)
    )
)
ran("shapes", "a unused 0, b kept 4")(
    lambda a, b: run(jax.jit(unused(a, b)), (X, X), (XS, XS), (X, X), (XS, XS))
)
ran("the shape of an unused argument", "a unused 0, b kept 4")(
    lambda a, b: run(jax.jit(unused(a, b)), (X, X), (X, XS), (X, X), (X, XS))
)
ran("scalars and arrays", "a unused 0, b kept 5")(
    lambda a, b: run(jax.jit(unused(a, b)), (X, 1), (XS, 2), (X, 3), (XS, 1.5), (X, 1.5))
)
ran("64-bit arrays that become 32-bit arrays", "a kept 3, b optimized away 0")(
    lambda a, b: run(jax.jit(lambda x: a(x) + 0 * b(x)), *(np.arange(n) for n in (2, 3, 2)))
)
ran("a dtype for which it is optimized away", "a kept 3")(
    lambda a: run(jax.jit(lambda x: x + 0 * a(x)), X, N, X, N, X)
)
ran("weak type", "a kept 3")(lambda a: run(jax.jit(lambda x: a(x)), 1.0, jnp.float32(1.0), 2.0))
ran("the tree of an argument", "a kept 3")(
    lambda a: run(
        jax.jit(lambda t: a(t["x"]) if "x" in t else t["y"] * 2),
        *({key: X} for key in ("x", "y", "x", "y", "x")),
    )
)
ran("a partial and a bound method", "a kept 2, b kept 2")(
    lambda a, b: (
        run(jax.jit(functools.partial(lambda s, x: b(x * s), 2)), X, X)
        or run(jax.jit(Model(a).step), X, X)
    )
)
ran("a branch that only the third run takes", "a kept 1, b kept 2")(
    lambda a, b: run(jax.jit(lambda x: lax.cond(x[0] > 2, a, b, x)), X, X, X + 2)
)
ran("loops", "a kept 12, b hoisted 3", known="a b")(
    lambda a, b: run(
        jax.jit(lambda x: lax.scan(lambda c, _: (a(c) + b(x), None), x, length=4)[0]), X, X, X
    )
)


@ran("a static keyword", "a kept 2, b kept 1")
def _(a, b):
    f = jax.jit(by_static(a, b), static_argnames="keep")
    for keep in (True, False, True):
        f(X, keep=keep)


@ran("a static argument, with effects", "a kept 3, b kept 3")
def _(h):
    a, b = h.io("a"), h.debug("b")
    run(jax.jit(lambda x, n: (b(x), a(x) * n)[1], static_argnums=1), (X, 1), (X, 2), (X, 1))


@ran("one python function jitted twice, and with donation", "a kept 6, b unused 0")
def _(a, b):
    g = lambda x: (b(x), a(x) + 1)[1]  # noqa: E731
    for f in (jax.jit(g), jax.jit(g), jax.jit(g, donate_argnums=0)) * 2:
        run(f, jnp.array(X))


@ran("clear_caches", "a kept 2, b unused 0")
def _(a, b):
    f = jax.jit(lambda x: (b(x), a(x))[1])
    run(f, X)
    jax.clear_caches()
    run(f, X)


# Eager transformations, and one program beside another.
ran("an eager vmap", "a kept 12")(lambda a: run(jax.vmap(jax.jit(lambda x: a(x))), XS, XS, XS))
ran("an eager grad", "a kept 3")(lambda a: run(jax.grad(loss(a)), X, X, X))
ran("an eager cond that takes both branches", "a kept 2, b kept 1")(
    lambda a, b: run(lambda p: lax.cond(jnp.bool_(p), a, b, X), True, False, True)
)


@ran("an eager scan", "a kept 9, b hoisted 3")
def _(a, b):
    x = jnp.asarray(X)

    def body(c, _):  # of one program, which runs three times
        return a(c) + b(x), None

    for _ in range(3):
        lax.scan(body, x, length=3)


@ran("alone and in an eager grad", "a kept 6")
def _(a):
    f = loss(a)
    for _ in range(3):
        run(f, X)
        run(jax.grad(f), X)


@ran("alone and inside of another", "a kept 6")
def _(a):
    f = jax.jit(lambda x: a(x))
    g = jax.jit(lambda x: f(x) + 1)
    for _ in range(3):
        run(f, X)
        run(g, X)


for eager in (jax.grad, jax.vmap):

    @ran(f"a program without our callbacks in an eager {eager.__name__}, beside one", "a kept 1")
    def _(a, eager=eager):
        run(jax.jit(a), X)
        run(eager(jax.jit(lambda x: x.sum())), XS[0], XS[0], XS[0])


@ran("a program that uses the result of another", "a kept 1, b kept 1", known="a b")
def _(a, b):
    run(jax.jit(lambda x: b(x)), jax.jit(lambda x: a(x))(X))


@ran("outside of jit, with jit disabled, and in a program", "a@1 kept 1, a@2 kept 1, a@3 kept 1")
def _(a):
    a(X)  # @1
    jax.jit(lambda x: a(x))(X)  # @2
    with jax.disable_jit():
        jax.jit(lambda x: a(x))(X)  # @3


@ran("x64", "a optimized away 0, b kept 1, c unused 0, d hoisted 1")
def _(a, b, c, d):
    def f(x, y):
        c(y)
        loop = lax.fori_loop(0, 3, lambda i, z: z + d(y), y)
        return x + 0 * a(x), b(y) + loop

    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        jax.jit(f)(np.arange(3), np.arange(3.0))


# Ahead of time.
ran("compiled and not run, under vmap", "a not run 0")(lambda a: run(compiled(jax.vmap(a), XS)))
ran("compiled, elided", "a unused 0, b optimized away 0, c not run 0")(
    lambda a, b, c: run(compiled(lambda x: (a(x), jnp.where(False, b(x), c(x)))[1], X))
)


@ran("make_jaxpr, eval_shape, trace and lower leave no site", "")
def _(h, a, b, c, d, e):
    jax.make_jaxpr(lambda x: (a(x), x)[1])(X)
    jax.eval_shape(b, X)
    jax.jit(c).trace(X)
    f = h.io("f")
    jax.jit(lambda x: (d(x), f(x), jnp.where(False, e(x), x))[1]).lower(X).as_text()


@ran("compiled and not run", "a not run 0, b not run 0, c not run 0", known="a b c")
def _(h, a):
    b, c = h.io("b"), h.debug("c")
    compiled(lambda x: (c(x), a(x) + b(x))[1], X)


@ran("compiled and not run, with a loop and a branch", "a not run 0, b not run 0")
def _(a, b):
    def f(x):
        y = lax.scan(lambda c, _: (a(c), None), x, length=3)[0]
        return lax.cond(x[0] > 0, b, lambda z: z, y)

    compiled(f, X)


@ran("one of two programs, and of two shapes", "a kept 1, b not run 0", known="a b")
def _(a, b):
    compiled(b, X)
    f = jax.jit(lambda x: a(x))
    f.lower(X).compile()
    run(f, XS)


@ran("ahead of time, then through the jitted function", "a kept 4, b optimized away 0, c unused 0")
def _(a, b, c):
    f = jax.jit(lambda x: (c(x), jnp.where(False, b(x), a(x)))[1])
    ahead = f.lower(X).compile()
    for _ in range(2):
        run(ahead, X)
        run(f, X)


for kind, other, line in (
    ("pure", "sin", "a not reached|unknown 0"),
    ("io", "sin", "a not reached 0"),
    ("pure", "b", "a not reached|not run 0, b kept 1"),
):

    @ran(f"a branch of {kind} not taken, ahead of time, beside {other}", line)
    def _(h, b, kind=kind, other=other):
        a, other = h.of_kind(kind), b if other == "b" else jnp.sin
        run(compiled(lambda x: lax.cond(x[0] > 9, a, other, x), X), X)


# Failures.
@ran("a program that fails while it is traced", "a unknown 0")
def _(a):
    def f(x):
        a(x)
        raise KeyError

    try:
        jax.jit(f)(X)
    except KeyError:
        pass


@ran("a program whose host function fails", "a kept 1, b not reached|not run|kept 0")
def _(h, b):
    def fail(x):
        raise KeyError

    a = h.pure("a", function=fail)
    try:
        run(jax.jit(lambda x: b(a(x))), X)
    except jax.errors.JaxRuntimeError:
        pass


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def test_runs_are_unknown_if_two_programs_of_a_function_cannot_be_distinguished():
    f = jax.jit(lambda x: (jaxcb.pure_callback(np.sin, x, x), x + 1)[1])
    with jaxcb.record() as r:
        run(f, *(np.ones(size, np.float32) for size in (2, 2, 3, 2, 2, 3)))
    assert len(r.recording.outcomes) == 2 and not r.recording.runs
