"""Chains of transformations that turn a function of (a, b), both arrays, into another one.

Each result is as long as `b`, so chains may have any length. Those in `FORWARD` cannot be
differentiated in reverse mode afterwards.
"""

import jax
import jax.numpy as jnp
from hypothesis import strategies as st


def _of(transform):
    """Make a transformation of functions of `b` one of functions of `a` and `b`."""
    return lambda f: lambda a, b: transform(lambda b: f(a, b), b)


def _vmapped(axes):
    def transform(f):
        def mapped(a, b):
            many = [
                x if axis is None else jnp.stack([x, x + 0.1])
                for x, axis in zip((a, b), axes, strict=True)
            ]
            return jax.vmap(f, axes)(*many).sum(0)

        return mapped

    return transform


def _scanned(f, b):
    carry, ys = jax.lax.scan(lambda c, x: (jnp.cos(f(c)) + x, f(x)), b, jnp.stack([b, 2 * b]))
    return carry + ys.sum(0)


def _while(f, b):
    return jax.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1]) / 3), (0, b))[1]


def _cond(f, b):
    return jax.lax.cond(b.sum() > 0, f, lambda b: 3 * f(2 * b), b)


CHAINED = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "grad": _of(lambda f, b: jax.grad(lambda b: jnp.sin(f(b)).sum())(b)),
    "value_and_grad": _of(lambda f, b: sum(jax.value_and_grad(lambda b: (f(b) ** 2).sum())(b))),
    "jvp": _of(lambda f, b: sum(jax.jvp(f, (b,), (jnp.cos(b),)))),
    "vjp": _of(lambda f, b: jax.vjp(f, b)[1](jnp.cos(b))[0]),
    "linearize": _of(lambda f, b: jax.linearize(f, b)[1](jnp.cos(b))),
    "jacfwd": _of(lambda f, b: jax.jacfwd(f)(b) @ jnp.cos(b)),
    "jacrev": _of(lambda f, b: jnp.cos(b) @ jax.jacrev(f)(b)),
    "hessian": _of(lambda f, b: jax.hessian(lambda b: jnp.sin(f(b)).sum())(b) @ b),
    "vmap of both": _vmapped((0, 0)),
    "vmap of a": _vmapped((0, None)),
    "vmap of b": _vmapped((None, 0)),
    "scan": _of(_scanned),
    "cond": _of(_cond),
}
FORWARD = {"while": _of(_while)}
REVERSE = {"grad", "value_and_grad", "vjp", "jacrev", "hessian"}


def chained(f, names):
    """Return `f` under the transformations, the first one innermost."""
    for name in names:
        f = {**CHAINED, **FORWARD}[name](f)
    return f


def chains(most):
    """Draw a chain; what cannot be differentiated in reverse mode comes after what does so."""
    names = st.lists(st.sampled_from([*CHAINED, *FORWARD]), min_size=1, max_size=most)

    def is_possible(names):
        loops = [n for n, name in enumerate(names) if name in FORWARD]
        return not loops or not any(name in REVERSE for name in names[loops[0] :])

    return names.filter(is_possible)
