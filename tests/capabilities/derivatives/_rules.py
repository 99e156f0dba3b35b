"""Derivative rules, each defined for a callback and for the same function in jnp.

A case is ``case(make, xp) -> g``: `make` registers a body, written with `xp` (numpy for the
callback, jnp for JAX), and takes rules as `PureCallback` does; `g` is a function of two numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

HALF_PI = np.float32(np.pi / 2)
FLOAT0 = jax.dtypes.float0


def ours(body, result):
    return jaxcb.pure(body, result=result)


class Theirs:
    """The body itself with jax.custom_jvp or jax.custom_vjp."""

    def __init__(self, body, result):
        self.body = body

    def defjvp(self, rule, *, nondiff_argnums=(), symbolic_zeros=False):
        self.call = jax.custom_jvp(self.body, nondiff_argnums=nondiff_argnums)
        self.call.defjvp(rule, symbolic_zeros=symbolic_zeros)

    def defvjp(self, forward, backward, *, nondiff_argnums=(), symbolic_zeros=False):
        self.call = jax.custom_vjp(self.body, nondiff_argnums=nondiff_argnums)
        self.call.defvjp(forward, backward, symbolic_zeros=symbolic_zeros)

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)


def forward_in_terms_of_itself(make, xp):
    sin = make(lambda x: xp.sin(x), lambda x: x)
    sin.defjvp(lambda p, t: (sin(*p), sin(p[0] + HALF_PI) * t[0]))
    return lambda x, y: sin(x * y)


def reverse_in_terms_of_itself(make, xp):
    sin = make(lambda x: xp.sin(x), lambda x: x)
    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (sin(x + HALF_PI) * ct,))
    return lambda x, y: sin(x * y)


def forward_with_symbolic_zeros(make, xp):
    """Add a different constant for each undifferentiated argument: the sum shows which it was."""
    product = make(lambda x, y: x * y, lambda x, y: x)

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        zero = jax.custom_derivatives.SymbolicZero
        parts = [3.0 if type(dx) is zero else dx * y, 5.0 if type(dy) is zero else x * dy]
        return product(x, y), parts[0] + parts[1]

    product.defjvp(rule, symbolic_zeros=True)
    return lambda x, y: product(x, y) + product(x, np.float32(2))


def reverse_with_symbolic_zeros(make, xp):
    product = make(lambda x, y: x * y, lambda x, y: x)

    def forward(x, y):
        seen = jnp.float32(10 * x.perturbed + y.perturbed)
        return product(x.value, y.value), (x.value, y.value, seen)

    def backward(residuals, ct):
        x, y, seen = residuals
        ct = 0.0 if type(ct) is jax.custom_derivatives.SymbolicZero else ct
        return ct * y + seen, ct * x + seen

    product.defvjp(forward, backward, symbolic_zeros=True)
    return lambda x, y: product(x, y) + product(x, np.float32(2))


def forward_beside_fixed_arguments(make, xp):
    """Arguments in `nondiff_argnums` reach the rule in the order of the function's parameters."""
    f = make(lambda n, x, k: k * x**n, lambda n, x, k: x)

    def rule(n, k, primals, tangents):
        (x,), (dx,) = primals, tangents
        return f(n, x, k), n * f(n - 1, x, k) * dx

    f.defjvp(rule, nondiff_argnums=(2, 0))
    return lambda x, y: f(3, x * y, 0.5)


def reverse_beside_fixed_arguments(make, xp):
    f = make(lambda n, x, k: k * x**n, lambda n, x, k: x)
    f.defvjp(
        lambda n, x, k: (f(n, x, k), x),
        lambda n, k, x, ct: (n * f(n - 1, x, k) * ct,),
        nondiff_argnums=(0, 2),
    )
    return lambda x, y: f(3, x * y, 0.5)


def keywords_and_defaults(make, xp):
    f = make(lambda x, scale=2.0: xp.sin(x) * scale, lambda x, scale=2.0: x)
    f.defjvp(lambda p, t: (f(*p), jnp.cos(p[0]) * p[1] * t[0] + jnp.sin(p[0]) * t[1]))
    return lambda x, y: f(x) + f(x, scale=y) + f(scale=y, x=x * y)


def keywords_and_defaults_in_reverse(make, xp):
    f = make(lambda x, scale=2.0: xp.sin(x) * scale, lambda x, scale=2.0: x)
    f.defvjp(
        lambda x, scale=7.0: (f(x, scale), (x, scale)),
        lambda r, ct: (jnp.cos(r[0]) * r[1] * ct, jnp.sin(r[0]) * ct),
    )
    return lambda x, y: f(x) + f(x, scale=y) + f(scale=y, x=x * y)


def pytrees_forward(make, xp):
    f = make(
        lambda p: {"s": p["a"] + p["b"][0], "t": (p["a"] * p["b"][1],)},
        lambda p: {"s": p["a"], "t": (p["a"],)},
    )

    def rule(primals, tangents):
        (p,), (t,) = primals, tangents
        moved = t["a"] * p["b"][1] + p["a"] * t["b"][1]
        return f(p), {"s": t["a"] + t["b"][0], "t": (moved,)}

    f.defjvp(rule)
    return lambda x, y: (lambda r: r["s"] ** 2 + r["t"][0])(f({"a": x, "b": [y, x * y]}))


def pytrees_in_reverse(make, xp):
    f = make(
        lambda p: {"s": p["a"] + p["b"][0], "t": (p["a"] * p["b"][1],)},
        lambda p: {"s": p["a"], "t": (p["a"],)},
    )

    def backward(p, ct):
        (t,) = ct["t"]
        return ({"a": ct["s"] + t * p["b"][1], "b": [ct["s"], t * p["a"]]},)

    f.defvjp(lambda p: (f(p), p), backward)
    return lambda x, y: (lambda r: r["s"] ** 2 + r["t"][0])(f({"a": x, "b": [y, x * y]}))


def no_cotangent(make, xp):
    """Return None for a whole argument, and for one leaf of another."""
    f = make(lambda x, p: x * p["a"] + p["b"], lambda x, p: x)
    f.defvjp(lambda x, p: (f(x, p), x), lambda x, ct: (None, {"a": x * ct, "b": None}))
    return lambda x, y: f(x, {"a": x * y, "b": y})


def integer_arguments(make, xp):
    power = make(lambda x, n: x**n, lambda x, n: x)

    def rule(primals, tangents):
        (x, n), (dx, dn) = primals, tangents
        assert dn.dtype == FLOAT0
        return power(x, n), n * power(x, n - 1) * dx

    power.defjvp(rule)
    return lambda x, y: power(x * y, np.int32(3))


def integer_arguments_in_reverse(make, xp):
    power = make(lambda x, n, m: x ** (n + m), lambda x, n, m: x)

    def backward(residuals, ct):
        x, n, m = residuals
        return (n + m) * power(x, n, m - 1) * ct, np.zeros((), FLOAT0), None

    power.defvjp(lambda x, n, m: (power(x, n, m), (x, n, m)), backward)
    return lambda x, y: power(x * y, np.int32(1), np.int32(2))


def integer_results(make, xp):
    f = make(
        lambda x: (x * x, xp.asarray(xp.floor(x), np.int32)),
        lambda x: (x, jax.ShapeDtypeStruct(x.shape, np.int32)),
    )
    f.defjvp(lambda p, t: (f(*p), (2 * p[0] * t[0], np.zeros(np.shape(p[0]), FLOAT0))))
    return lambda x, y: f(x * y)[0] + f(10 * x)[1]


def arrays(make, xp):
    f = make(lambda a, v: a @ v, lambda a, v: v)
    f.defjvp(lambda p, t: (f(*p), t[0] @ p[1] + p[0] @ t[1]))
    return lambda x, y: f(jnp.outer(jnp.array([x, y]), jnp.array([1.0, y])), jnp.array([y, x]))[1]


def arrays_in_reverse(make, xp):
    f = make(lambda a, v: a @ v, lambda a, v: v)
    f.defvjp(lambda a, v: (f(a, v), (a, v)), lambda r, ct: (jnp.outer(ct, r[1]), f(r[0].T, ct)))
    return lambda x, y: f(jnp.outer(jnp.array([x, y]), jnp.array([1.0, y])), jnp.array([y, x]))[1]


RULES = [
    forward_in_terms_of_itself,
    reverse_in_terms_of_itself,
    forward_with_symbolic_zeros,
    reverse_with_symbolic_zeros,
    forward_beside_fixed_arguments,
    reverse_beside_fixed_arguments,
    keywords_and_defaults,
    keywords_and_defaults_in_reverse,
    pytrees_forward,
    pytrees_in_reverse,
    no_cotangent,
    integer_arguments,
    integer_arguments_in_reverse,
    integer_results,
    arrays,
    arrays_in_reverse,
]
