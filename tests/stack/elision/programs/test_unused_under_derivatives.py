"""An unused call inside a function that JAX traces separately, with and without a derivative."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
ROWS, row = table()


def inside(wrap, derive):
    """Return a program with an unused call inside `wrap`, differentiated by `derive`."""

    def program(h):
        a = h.pure("a")
        f = wrap(lambda x: (a(lax.stop_gradient(x)), jnp.sin(x))[1])
        return jax.jit(derive(lambda x: f(x).sum())), (X,)

    return program


def in_scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0]


def in_cond(f):
    return lambda x: lax.cond(x[0] > 0, f, lambda y: y, x)


WRAPS = {"an inner jit": jax.jit, "remat": jax.checkpoint, "a scan": in_scan, "a cond": in_cond}
for wrap in WRAPS:
    unused = {"a": "unused 0"}
    row(f"an unused call in {wrap}", unused, (0, 0))(inside(WRAPS[wrap], lambda f: f))
    row(f"an unused call in {wrap} under grad", unused, (0, 0))(inside(WRAPS[wrap], jax.grad))
    row(f"an unused call in {wrap} under value_and_grad", unused, (0, 0))(
        inside(WRAPS[wrap], jax.value_and_grad)
    )


@row("an unused call with a derivative rule in a predicate", {"a": "unused 0"}, (0, 0))
def _(h):
    a = h.pure("a")
    a.defjvp(lambda primals, tangents: (a(*primals), tangents[0]))

    def program(x):
        def go(y):
            return lax.map(lambda z: (a(y), z)[1], x).sum() < 50

        return lax.while_loop(lambda s: (s[0] < 4) & go(s[1]), lambda s: (s[0] + 1, s[1]), (0, x))[
            1
        ]

    return program, (X,)


@row("a call with a derivative rule of which only the shape is used", {"a": "unused 0"}, (0, 0))
def _(h):
    a = h.pure("a")
    a.defjvp(lambda primals, tangents: (a(*primals), tangents[0]))
    return lambda x: x * len(jax.eval_shape(a, x).shape), (X,)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
