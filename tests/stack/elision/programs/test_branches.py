"""cond, switch and platform_dependent: constant or from data, taken or not, and under vmap."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
XS = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS, row = table(X)

row("a cond with a constant true condition", "a kept 1, b optimized away 0", (2, 1))(
    lambda a, b: lambda x: lax.cond(True, a, b, x)
)
row("an unused result of a branch", "a unused 0, b kept 1", (1, 1))(
    lambda a, b: lambda x: lax.cond(x[0] > 0, lambda: (a(x), b(x)), lambda: (x, x))[1]
)
row("a cond in a scan takes either branch", "a kept 2, b kept 3", (2, 2))(
    lambda a, b: (
        lambda x: lax.scan(lambda c, i: (lax.cond(i < 2, a, b, c), None), x, jnp.arange(5))[0]
    )
)
row(
    "a cond vmapped over its condition calls one for each element",
    "a kept 0, b kept 4",
    (2, 2),
    notes={"a": "0 of 4 batch elements reached it", "b": "4 of 4 batch elements reached it"},
)(lambda a, b: (jax.vmap(lambda x: lax.cond(x[0] > 99, a, b, x)), (XS,)))
row("a cond vmapped over its operand alone", "a kept 4", notes={"a": ""})(
    lambda a: (jax.vmap(lambda on, x: lax.cond(on, a, jnp.sin, x), (None, 0)), (True, XS))
)
row("a vmapped while that no batch element enters", "a not reached 0", (1, 1))(
    lambda a: (
        jax.vmap(lambda x: lax.while_loop(lambda c: c[0] > 99, lambda c: a(c) + 1, x)),
        (XS,),
    )
)
row("a branch within a branch", "a not reached 0, b kept 1, c not reached 0", (3, 3))(
    lambda a, b, c: lambda x: lax.cond(x[0] > 0, lambda x: lax.cond(x[1] > 9, a, b, x), c, x)
)


@row("platform_dependent falls back to its default", "a unused 0, b kept 1", (1, 1))
def _(h, a):
    b = h.debug("b")
    return lambda x: lax.platform_dependent(x, tpu=a, default=lambda y: (b(y), y)[1])


@row("a hoisted call under a branch not taken", "a not reached 0")
def _(a):
    def loop(x):
        return lax.scan(lambda c, _: (c + a(x), None), x, length=5)[0]

    return lambda x: lax.cond(x[0] > 9, loop, lambda y: y, x)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
