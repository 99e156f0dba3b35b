"""grad, jvp, linearize, remat, custom_jvp and custom_vjp."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.stack.elision._battery import check, each, table

X = np.arange(1, 4, dtype=np.float32)
ROWS, row = table(X)
POLICIES = jax.checkpoint_policies
AGAIN = "the backward pass"


def stopped(callback):
    return lambda x: callback(lax.stop_gradient(x))


def with_jvp(a, b):
    """Return a function that calls `a` and whose derivative calls `b`."""
    f = jax.custom_jvp(lambda x: a(x))

    @f.defjvp
    def _(primals, tangents):
        return f(*primals), b(*primals) * tangents[0]

    return f


def with_vjp(a, b, c):
    """Return a function that calls `a`, and `b` forwards and `c` backwards under a derivative."""
    f = jax.custom_vjp(lambda x: a(x))
    f.defvjp(lambda x: (b(x), x), lambda x, ct: (c(x) * ct,))
    return f


row("custom_vjp without a derivative", "a kept 1", (1, 1))(with_vjp)


@row("hessian", "a unused 0, b kept 1, b:2 kept 1, c kept 1", (3, 3))
def _(a, b, c):
    f = with_jvp(a, with_jvp(b, c))
    return jax.jit(jax.hessian(lambda x: (f(x) * 2).sum() * x.sum()))


def needed(a, policy=None):
    """Return a checkpoint around a call whose result its derivative needs."""
    return jax.checkpoint(lambda x: jnp.sin(x * stopped(a)(x)), policy=policy)


for name, policy, derivative, calls in (
    ("saves nothing", None, jax.value_and_grad, 2),
    ("saves everything", POLICIES.everything_saveable, jax.value_and_grad, 1),
    ("saves dots", POLICIES.dots_saveable, jax.value_and_grad, 2),
    ("saves nothing, without its value", None, jax.grad, 1),
):
    note = {"a": AGAIN if calls == 2 else ""}

    @row(f"remat that {name}", f"a kept {calls}", (calls, calls), notes=note)
    def _(a, policy=policy, derivative=derivative):
        return derivative(lambda x: needed(a, policy)(x).sum())


row("remat without a derivative", "a kept 1", (1, 1), known="a")(needed)


def sine_of(a):
    a.defjvp(lambda primals, tangents: (a(*primals), jnp.cos(*primals) * tangents[0]))
    return jax.jit(lambda x: jnp.sin(a(x)))


@row("a call outside of the checkpoint is not its call again", "a kept 2", notes={"a": ""})
def _(a):
    f = sine_of(a)
    return jax.grad(lambda x: jax.checkpoint(f)(f(x))), (X[0],)


@row("a call in a checkpoint before another call", "a kept 3", notes={"a": AGAIN})
def _(a):
    f = sine_of(a)
    return jax.grad(lambda x: f(jax.checkpoint(f)(x))), (X[0],)


@row("a checkpoint in one that needs no value of it", "a kept 2", notes={"a": AGAIN})
def _(a):
    return jax.grad(jax.checkpoint(lambda x: jnp.cos(needed(a)(x)))), (X[0],)


@row("remat of which XLA removes a call", "a kept 1", (2, 1), notes={"a": ""})
def _(a):
    def slope(x):
        value, slope = jax.value_and_grad(lambda x: needed(a)(x).sum())(x)
        return lax.select(jnp.zeros(3) > 1, value + slope, slope)  # XLA computes the predicate

    return slope


@row("remat with a debug", lambda n: f"a kept {n[1]}")
def _(h):
    a = h.debug("a")
    f = jax.checkpoint(lambda x: (a(x), jnp.sin(x))[1])
    return jax.value_and_grad(lambda x: f(x).sum())


@row("grad hoists a call out of the inner of two loops, the outer of length 1", "a hoisted 1")
def _(a):
    def inner(x, k):
        return lax.scan(lambda c, _: (c * a(k), None), x, None, length=5)[0]

    def outer(x, ks):
        return lax.scan(lambda c, k: (inner(c, k), None), x, ks)[0]

    return jax.grad(lambda x, ks: outer(x, ks).sum()), (X, X[:1])


def scanned(f):
    """Return a program that calls `f`, jitted on its own, in each iteration of a scan."""
    f = jax.jit(f)
    return lambda x: lax.scan(lambda c, _: (jnp.sin(f(c)), None), x, None, length=3)[0].sum()


row("grad of a jitted function in a scan", "a kept 3, b kept 3", known="a b")(
    lambda a, b: jax.grad(scanned(with_jvp(a, b)))
)
row("grad of a jitted function with a custom_vjp in a scan", "b kept 3, c kept 3", known="b c")(
    lambda a, b, c: jax.grad(scanned(with_vjp(a, b, c)))
)


@row("jvp of a jitted function in a scan", "a kept 3, b kept 3", known="a b")
def _(a, b):
    f = scanned(with_jvp(a, b))
    return lambda x: jax.jvp(f, (x,), (x,))


@row("grad of a jitted function of a constant in a scan", "a hoisted 1, b hoisted 1")
def _(a, b):
    f = jax.jit(with_jvp(a, b))

    def loop(x, y):
        return lax.scan(lambda c, _: (c * f(y), None), x, None, length=3)[0].sum()

    return jax.grad(loop, argnums=(0, 1)), (X, X)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
