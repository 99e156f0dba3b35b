"""Jitted functions inside jitted functions: one call kept where the source has two."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.stack.elision._battery import Hosts, by_key, check, each, table

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)
ROWS, row = table()


@row("an inner jit called once", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    g = jax.jit(h.pure("a"))
    return lambda x: g(x), (X,)


def kept_or_deduplicated(counts):
    """Return the expected rows of a line that is reached twice."""
    return {"a": "deduplicated 1" if counts[1] == 1 else "kept 2"}


@row("an inner jit called twice with equal arguments", kept_or_deduplicated, known="a")
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x) + g(x), (X,)


@row("an inner jit called three times with equal arguments", {"a": "deduplicated 1"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x) + 1)
    return lambda x: g(x) + 2 * g(x) + 3 * g(x), (X,)


@row("an inner jit called with two equal and one different argument", {"a": "deduplicated 2"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x) + 1)
    return lambda x: g(x) + 2 * g(x) + 3 * g(x + 1), (X,)


@row("an inner jit called with different arguments", {"a": "kept 2"}, known="a")
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x) + g(x + 1), (X,)


@row("an inner jit called with arguments that XLA finds equal", {"a": "deduplicated 1"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x) - 2 * g(x + 0), (N,)


@row("an inner jit with io called twice", {"a": "kept 2"}, known="a")
def _(h):
    a = h.io("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x) + g(x), (X,)


@row("an inner jit with debug called twice", {"a": "kept 2"}, known="a")
def _(h):
    a = h.debug("a")
    g = jax.jit(lambda x: (a(x), x)[1])
    return lambda x: g(x) + g(x), (X,)


@row("an inner jit called twice, one result unused", {"a": "deduplicated 1"}, (1, 1))
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: (g(x), g(x + 1))[1], (X,)


@row("an inner jit called twice, both results unused", {"a": "unused 0"}, (0, 0))
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: (g(x), g(x + 1), x)[2], (X,)


@row(
    "each call of an inner jit uses a different result",
    {"a": "deduplicated 1", "b": "deduplicated 1"},
    (2, 2),
)
def _(h):
    a, b = h.pure("a"), h.pure("b")
    g = jax.jit(lambda x: (a(x), b(x)))
    return lambda x: g(x)[0] + g(x + 1)[1], (X,)


@row("one result of an inner jit is not used", {"a": "unused 0", "b": "kept 1"}, (1, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    g = jax.jit(lambda x: (a(x), b(x)))
    return lambda x: g(x)[1], (X,)


@row(
    "one of two calls with different arguments is optimized away",
    {"a": "kept|deduplicated 1"},
    (1, 1),
)
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x) + 0 * g(x + 1), (N,)


@row("both calls of an inner jit are optimized away", {"a": "optimized away 0"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: x + 0 * g(x) + 0 * g(x + 1), (N,)


@row("two lines in an inner jit that is called twice", {"a": "deduplicated 1", "b": "kept 2"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    g = jax.jit(lambda x, y: a(x) * b(y))
    return lambda x: g(x, x) + g(x, x + 1), (X,)


@row("an inner jit in an inner jit", {"a": "deduplicated 1"})
def _(h):
    a = h.pure("a")
    inner = jax.jit(lambda x: a(x))
    middle = jax.jit(lambda x: inner(x) + 1)
    return lambda x: middle(x) * inner(x), (X,)


@row("an inner jit called twice in a scan", {"a": "deduplicated 4"}, known="a")
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: lax.scan(lambda c, _: (g(c) + 2 * g(c), None), x, length=4)[0], (X,)


@row("an inner jit in both branches", {"a": "kept 1"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: lax.cond(x[0] > 0, g, lambda y: g(y + 1), x), (X,)


@row("an inner jit vmapped and not", {"a": "kept 1", "a:2": "kept 3"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x) + jax.vmap(g)(x), (X,)


@row("an inner jit called at two shapes", {"a": "kept 1", "a:2": "kept 1"}, known="a a:2")
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: g(x)[:2] + g(x[:2]), (X,)


@row("a host function called on two lines of an inner jit", {"a@1": "kept 1", "a@2": "kept 1"})
def _(h):
    a = h.pure("a")

    @jax.jit
    def g(x):
        y = a(x)  # @1
        z = a(x)  # @2
        return y - 2 * z

    return lambda x: g(x), (X,)


@row("an inner jit that is inlined", kept_or_deduplicated, known="a")
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x), inline=True)
    return lambda x: g(x) - 2 * g(x), (X,)


@row("a function called twice without jit", {"a": "kept 1", "a:2": "kept 1"}, (2, 2), known="a a:2")
def _(h):
    a = h.pure("a")
    g = lambda x: a(x)  # noqa: E731
    return lambda x: g(x) - 2 * g(x), (X,)


@row("a call inside a jitted function of JAX", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x: jnp.linalg.norm(a(x)), (X,)


@row("an inner jit called in a loop and before it", {"a": "kept 4"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: lax.scan(lambda c, _: (g(c) + 1, None), g(x), length=3)[0], (X,)


@row(
    "an inner jit whose call is hoisted next to an equal one",
    lambda n: {"a": "hoisted|deduplicated 1"},
)
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    return lambda x: lax.scan(lambda c, _: (c + g(x), None), g(x), length=3)[0], (X,)


@row("an unrolled loop with an invariant inner jit", lambda n: {"a": "deduplicated|hoisted 1"})
def _(h):
    a = h.pure("a")
    g = jax.jit(lambda x: a(x))
    body = lambda c, x, g=g: (c + g(x), None)  # noqa: E731
    return lambda x: lax.scan(lambda c, _: body(c, x), x, length=3, unroll=3)[0], (X,)


@row("an inner jit with an invariant call, in a scan under grad", {"a": "hoisted 1"}, known="a")
def _(h):
    a = h.pure("a")

    def f(x):
        g = jax.jit(lambda x: x * a(X))
        return jax.lax.scan(lambda c, _: (g(c), None), x, length=4)[0].sum()

    return jax.grad(f), (X,)


@row("the same inner jit also outside of the scan", {"a": "kept 5"}, known="a")
def _(h):
    a = h.pure("a")

    def f(x):
        g = jax.jit(lambda x: x * a(x))
        return jax.lax.scan(lambda c, _: (g(c), None), x, length=4)[0] + g(x)

    return f, (X,)


@row("a call in two inner jits in two loops", {"a": "kept 6"}, known="a")
def _(h):
    a = h.pure("a")

    def f(x):
        inner = jax.jit(lambda x: x * a(x))
        middle = jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, c: inner(c), x))
        return jax.lax.scan(lambda c, _: (middle(c), None), x, length=3)[0]

    return f, (X,)


def test_reason_of_an_optimized_away_call_is_not_equal_arguments():
    hosts = Hosts()
    g = jax.jit(hosts.pure("a"))
    with jaxcb.record() as recorded:
        jax.jit(lambda x: g(x) + 0 * g(x + 1))(N).block_until_ready()
    assert hosts.calls == {"a": 1}
    assert "equal arguments" not in by_key(recorded.recording)["a"].reason


@row(
    "a batched predicate in an inner jit, in a branch of an inner jit",
    {"a": "kept 3"},
    notes={"a": "every branch runs"},
)
def _(h):
    a = h.pure("a")
    inner = jax.jit(lambda x: lax.cond(x > 1, a, lambda x: x, x))
    outer = jax.jit(lambda p, x: lax.cond(p, jax.vmap(inner), lambda x: x, x))
    return lambda p, x: outer(p > 0, x), (X[0], X)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
