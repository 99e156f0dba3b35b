"""cond, switch and platform_dependent: constant or from data, taken or not, and under vmap."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS, row = table()


@row("a cond takes one branch", {"a": "kept 1", "b": "not reached 0"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.cond(x[0] > 0, a, b, x), (X,)


@row("a cond takes the other branch", {"a": "not reached 0", "b": "kept 1"}, (2, 2))
def _(h):
    a, b = h.io("a"), h.io("b")
    return lambda x: lax.cond(x[0] > 9, a, b, x), (X,)


@row("a debug in a branch that is not entered", {"a": "not reached 0"}, (1, 1))
def _(h):
    a = h.debug("a")
    return lambda x: lax.cond(x[0] > 9, lambda: (a(x), x)[1], lambda: x), (X,)


@row("a cond with a constant true condition", {"a": "kept 1", "b": "optimized away 0"}, (2, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.cond(True, a, b, x), (X,)


@row(
    "io in a branch that a constant condition rules out",  # XLA of jaxlib 0.10.0 keeps it
    {"a": "optimized away|not reached 0", "b": "kept 1"},
)
def _(h):
    a, b = h.io("a"), h.io("b")
    return lambda x: lax.cond(False, a, b, x), (X,)


@row(
    "debug in a branch that a constant condition rules out",  # XLA of jaxlib 0.10.0 keeps it
    {"a": "optimized away|not reached 0", "b": "kept 1"},
)
def _(h):
    a, b = h.debug("a"), h.debug("b")
    return lambda x: lax.cond(False, lambda: (a(x), x)[1], lambda: (b(x), x)[1]), (X,)


@row(
    "ordered io in a branch that a constant condition rules out",
    {"a": "optimized away|not reached 0"},
)
def _(h):
    a = h.io("a", ordered=True)
    return lambda x: lax.cond(False, a, lambda y: y, x), (X,)


@row(
    "ordered io in a branch not taken because of data",
    {"a": "not reached 0", "b": "kept 1"},
    (2, 2),
)
def _(h):
    a, b = h.io("a", ordered=True), h.io("b", ordered=True)
    return lambda x: lax.cond(x[0] > 9, a, b, x), (X,)


@row(
    "a condition that XLA evaluates at compile time",
    {"a": "optimized away 0", "b": "kept 1"},
    (2, 1),
)
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.cond(jnp.ones(3).sum() > 9, a, b, x), (X,)


@row("a result that only a dead branch uses", {"a": "optimized away 0"}, (1, 0))
def _(h):
    a = h.pure("a")

    def f(x):
        y = a(x)
        return lax.cond(False, lambda: y + x, lambda: x)

    return f, (X,)


@row("a result that only a branch not taken uses", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")

    def f(x):
        y = a(x)
        return lax.cond(x[0] > 9, lambda: y + x, lambda: x)

    return f, (X,)


@row("an unused result of a branch", {"a": "unused 0", "b": "kept 1"}, (1, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.cond(x[0] > 0, lambda: (a(x), b(x)), lambda: (x, x))[1], (X,)


@row("an unused cond with io in it", {"a": "kept 1", "b": "unused 0"}, (1, 1))
def _(h):
    a, b = h.io("a"), h.pure("b")

    def f(x):
        lax.cond(x[0] > 0, a, b, x)
        return x

    return f, (X,)


@row(
    "a switch with an index from data", {"a": "not reached 0", "b": "kept 1", "c": "not reached 0"}
)
def _(h):
    branches = [h.pure("a"), h.pure("b"), h.pure("c")]
    a, b, c = branches
    return lambda x, i: lax.switch(i, [a, b, c], x), (X, np.int32(1))


@row(
    "a switch with a constant index",
    {"a": "optimized away 0", "b": "optimized away 0", "c": "kept 1"},
    (3, 1),
)
def _(h):
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
    return lambda x: lax.switch(2, [a, b, c], x), (X,)


@row(
    "a switch with a constant index that XLA keeps for its side effect",
    lambda n: {
        "a": "optimized away 0",
        "b": "not reached 0" if n[1] == 2 else "optimized away 0",
        "c": "kept 1",
    },
)
def _(h):
    a, b, c = h.pure("a"), h.debug("b"), h.pure("c")
    return lambda x: lax.switch(2, [a, lambda y: (b(y), y)[1], c], x), (X,)


@row("a switch whose index is clamped", {"a": "not reached 0", "b": "kept 1"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x, i: lax.switch(i, [a, b], x), (X, np.int32(7))


@row("a cond in a scan takes either branch", {"a": "kept 2", "b": "kept 3"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")

    def body(c, i):
        return lax.cond(i < 2, a, b, c), None

    return lambda x: lax.scan(body, x, jnp.arange(5))[0], (X,)


@row(
    "a cond in a scan that never takes one of its branches",
    {"a": "not reached 0", "b": "kept 5"},
    (2, 2),
)
def _(h):
    a, b = h.debug("a"), h.debug("b")

    def body(c, i):
        return lax.cond(c[0] > 99, lambda: (a(c), c)[1], lambda: (b(c), c)[1]), None

    return lambda x: lax.scan(body, x, jnp.arange(5))[0], (X,)


@row("both branches reach the same line", {"a": "kept 1", "a:2": "not reached 0"}, (2, 2))
def _(h):
    a = h.pure("a")

    def call(x):
        return a(x)

    return lambda x: lax.cond(x[0] > 0, call, lambda y: call(y + 1), x), (X,)


@row("a python if is not a branch of the program", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: a(x) if x.ndim == 1 else b(x), (X,)


@row("a cond outside of jit", {"a": "kept 1", "b": "not reached|optimized away 0"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    lax.cond(X[0] > 0, a, b, jnp.asarray(X))


@row(
    "platform_dependent lowers the branch of one platform", {"a": "kept 1", "b": "unused 0"}, (1, 1)
)
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.platform_dependent(x, cpu=a, default=b), (X,)


@row("platform_dependent falls back to its default", {"a": "unused 0", "b": "kept 1"}, (1, 1))
def _(h):
    a, b = h.pure("a"), h.debug("b")
    return lambda x: lax.platform_dependent(x, tpu=a, default=lambda y: (b(y), y)[1]), (X,)


@row(
    "a cond vmapped over its condition calls both",
    {"a": "kept 4", "b": "kept 4"},
    (2, 2),
    notes={"a": "every branch runs", "b": "every branch runs"},
)
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return jax.jit(jax.vmap(lambda x: lax.cond(x[0] > 99, a, b, x))), (XS,)


@row(
    "a cond vmapped only over its operand takes one branch",
    {"a": "kept 4", "b": "not reached 0"},
    (2, 2),
)
def _(h):
    a, b = h.pure("a"), h.pure("b")

    def f(p, xs):
        return jax.vmap(lambda x: lax.cond(p, a, b, x))(xs)

    return f, (np.bool_(True), XS)


@row(
    "a debug in a cond vmapped over its condition",
    {"a": "kept 4"},
    notes={"a": "every branch runs"},
)
def _(h):
    a = h.debug("a")

    def branching(x):
        return lax.cond(x[0] > 99, lambda: (a(x), x)[1], lambda: x)

    return jax.jit(jax.vmap(branching)), (XS,)


@row(
    "a while vmapped over its condition",
    {"a": "kept 16"},
    (1, 1),
    notes={"a": "finished"},
)
def _(h):
    a = h.pure("a")
    loop = lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: a(c) + 1, x)  # noqa: E731
    return jax.jit(jax.vmap(loop)), (XS * 0 + np.arange(4, dtype=np.float32)[:, None],)


@row("a vmapped while that no batch element enters", {"a": "not reached 0"}, (1, 1))
def _(h):
    a = h.pure("a")
    loop = lambda x: lax.while_loop(lambda c: c[0] > 99, lambda c: a(c) + 1, x)  # noqa: E731
    return jax.jit(jax.vmap(loop)), (XS,)


@row(
    "a branch within a branch", {"a": "not reached 0", "b": "kept 1", "c": "not reached 0"}, (3, 3)
)
def _(h):
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")

    def outer(x):
        return lax.cond(x[1] > 9, a, b, x)

    return lambda x: lax.cond(x[0] > 0, outer, c, x), (X,)


@row("a hoisted call under a branch not taken", {"a": "not reached 0"})
def _(h):
    a = h.pure("a")

    def loop(x):
        return lax.scan(lambda c, _: (c + a(x), None), x, length=5)[0]

    return lambda x: lax.cond(x[0] > 9, loop, lambda y: y, x), (X,)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
