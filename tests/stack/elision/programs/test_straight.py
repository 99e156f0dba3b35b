"""Straight-line programs: kept, unused and optimized-away calls, and near misses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import check, each, table

from ._elsewhere import ignored, twice

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)
KEPT = {"a": "kept 1", "b": "unused 0", "d": "kept 1"}
ROWS, row = table()


@row("a pure callback is kept", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    return h.pure("a"), (X,)


@row("an io callback whose result is unused is kept", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    a = h.io("a")

    def f(x):
        a(x)
        return x

    return f, (X,)


@row("an ordered io callback is kept", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    a = h.io("a", ordered=True)
    return lambda x: (a(x), x)[1], (X,)


@row("a debug callback is kept", {"a": "kept 1", "b": "kept 1"}, (2, 2), known="a b")
def _(h):
    a, b = h.debug("a"), h.debug("b", ordered=True)
    return lambda x: (a(x), b(x), x)[2], (X,)


@row("a pure callback whose result is not used is elided", {"a": "unused 0"}, (0, 0), known="a")
def _(h):
    a = h.pure("a")

    def f(x):
        a(x)
        return x + 1

    return f, (X,)


@row(
    "a chain of pure callbacks whose last result is unused",
    {"a": "unused 0", "b": "unused 0"},
    (0, 0),
)
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: (b(a(x)), x)[1], (X,)


@row("an unused pure callback does not elide the operand it shares with a debug", KEPT, (2, 2))
def _(h):
    a, b, d = h.pure("a"), h.pure("b"), h.debug("d")

    def f(x):
        y = a(x)
        b(y)
        d(y)
        return x

    return f, (X,)


@row("a result of which only the shape is used", {"a": "unused 0"}, (0, 0))
def _(h):
    a = h.pure("a")
    return lambda x: x + a(x).shape[0], (X,)


@row("a result of which only zeros_like is used", {"a": "unused 0"}, (0, 0))
def _(h):
    a = h.pure("a")
    return lambda x: x + jnp.zeros_like(a(x)), (X,)


@row("a result of which only ones_like and the dtype are used", {"a": "unused 0"}, (0, 0))
def _(h):
    a = h.pure("a")

    def f(x):
        y = a(x)
        return jnp.ones_like(y) + x.astype(y.dtype)

    return f, (X,)


@row("a result of which the size and one element are used", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")

    def f(x):
        y = a(x)
        return x.sum() + y.size + y[0]

    return f, (X,)


@row("eval_shape in a jitted function calls nothing", {"b": "kept 1"})
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: b(x) + jnp.zeros(jax.eval_shape(a, x).shape), (X,)


@row("where with a constant false condition", {"a": "optimized away 0"}, (1, 0))
def _(h):
    a = h.pure("a")
    return lambda x: jnp.where(False, a(x), x), (X,)


@row("where with a constant true condition", {"a": "optimized away 0", "b": "kept 1"}, (2, 1))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: jnp.where(jnp.bool_(True), b(x), a(x)), (X,)


@row("where with a condition from data calls both", {"a": "kept 1", "b": "kept 1"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: jnp.where(x > 9, a(x), b(x)), (X,)


@row("zero times an integer", {"a": "optimized away 0"}, (1, 0), known="a")
def _(h):
    a = h.pure("a")
    return lambda x: x + 0 * a(x), (N,)


@row("zero times a float may be nan", {"a": "kept 1"}, (1, 1), known="a")
def _(h):
    a = h.pure("a")
    return lambda x: x + 0 * a(x), (X,)


@row("an integer minus itself", {"a": "optimized away 0"}, (1, 0))
def _(h):
    a = h.pure("a")

    def f(x):
        y = a(x)
        return x + (y - y)

    return f, (N,)


@row("a float minus itself may be nan", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")

    def f(x):
        y = a(x)
        return x + (y - y)

    return f, (X,)


@row("an integer and zero", {"a": "optimized away 0"}, (1, 0))
def _(h):
    a = h.pure("a")
    return lambda x: x | (a(x) & 0), (N,)


@row(
    "zero times a chain of integer calls",
    {"a": "optimized away 0", "b": "optimized away 0", "c": "kept 1"},
    (3, 1),
)
def _(h):
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
    return lambda x: c(x) + 0 * b(a(x)), (N,)


@row("zero times the result of an io callback", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.io("a")
    return lambda x: x + 0 * a(x), (N,)


@row(
    "a concatenation whose second part is sliced off",
    {"a": "optimized away 0", "b": "kept 1"},
    (2, 1),
)
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: jnp.concatenate([b(x), a(x)])[:3], (X,)


@row("a concatenation of whose second part one element is left", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x: jnp.concatenate([x, a(x)])[:4], (X,)


@row("an empty slice of a result", lambda n: {"a": "unused|optimized away 0"})
def _(h):
    a = h.pure("a")
    return lambda x: x + a(x)[:0].sum(), (X,)


@row("slices of a result, static and dynamic", {"a": "kept 1", "b": "kept 1"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x, i: a(x)[1] + lax.dynamic_slice(b(x), (i,), (1,)), (X, np.int32(1))


@row("a slice out of bounds is clamped and needs the result", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x, i: a(x)[i], (X, np.int32(99))


@row("two results of which one is used", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a", result=lambda x: (x, x), function=lambda x: (x, x))
    return lambda x: a(x)[1], (X,)


@row("an integer that is only compared with itself", {"a": "optimized away 0"}, (1, 0))
def _(h):
    a = h.pure("a")

    def f(x):
        y = a(x)
        return jnp.where(y == y, x, 0)

    return f, (N,)


@row("two calls on one line are two sites", {"a": "kept 1", "a:2": "kept 1"}, (2, 2), known="a a:2")
def _(h):
    a = h.pure("a")
    return lambda x: a(x) + a(x), (X,)


@row("two calls on one line, one of them unused", {"a": "unused 0", "a:2": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x: (a(x), a(x + 1))[1], (X,)


@row("equal calls on two lines are not deduplicated", {"a@1": "kept 1", "a@2": "kept 1"}, (2, 2))
def _(h):
    a = h.pure("a")

    def f(x):
        y = a(x)  # @1
        z = a(x)  # @2
        return y - z

    return f, (N,)


@row("one line reached three times by a python loop", {"a": "kept 3"}, (3, 3), known="a")
def _(h):
    a = h.pure("a")
    return lambda x: sum(a(x + i) for i in range(3)), (X,)


@row("one line reached twice, with one result unused", {"a": "kept 1"}, (1, 1))
def _(h):
    a = h.pure("a")
    return lambda x: [a(x + i) for i in range(2)][1], (X,)


@row("a helper in another file", {"a": "kept 1", "b": "unused 0"}, (1, 1), known="a b")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: ignored(b, twice(a, x)), (X,)


@row("a helper in another file called on two lines", {"a": "kept 1", "a:2": "kept 1"}, (2, 2))
def _(h):
    a = h.pure("a")

    def f(x):
        y = twice(a, x)
        return y + twice(a, y)

    return f, (X,)


@row("stop_gradient and optimization_barrier keep a result", {"a": "kept 1", "b": "kept 1"}, (2, 2))
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.stop_gradient(a(x)) + 0 * lax.optimization_barrier(b(x)), (X,)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


@pytest.mark.parametrize("flavor", [jaxcb.io(result=None), jaxcb.debug()], ids=["io", "debug"])
def test_call_of_a_constant_in_an_unused_checkpoint_is_made_as_in_jax_or_reported(flavor):
    def program(call):
        def checkpointed(x):
            call(np.float32(1))
            return jnp.sin(x)

        return jax.jit(lambda x: (jax.checkpoint(checkpointed)(x), x * 2)[1])

    def made(call):
        seen.clear()
        jax.block_until_ready(program(call)(X))
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
