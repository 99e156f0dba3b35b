"""jax.test_util.check_grads, applied to derivative rules and to our finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jupyter_jaxcb as jaxcb

V = np.float32([0.3, -0.8, 1.2])
A = np.float32([[1.0, 0.2, 0.0], [-0.4, 2.0, 0.3], [0.1, 0.0, 1.5]])
TREE = {"a": np.float32(0.7), "b": [V, np.float32(1.4)]}


def sine(x):
    return np.sin(x)


def atan2(y, x):
    return np.arctan2(y, x)


def solve(a, v):
    return np.linalg.solve(a, v)


def mixed(p):
    return {"s": np.sin(p["a"]) * p["b"][0], "t": p["b"][1] * p["b"][0].sum()}


def mixed_result(p):
    return {"s": p["b"][0], "t": p["a"]}


FUNCTIONS = {
    "sine": (sine, "x", (V,)),
    "atan2": (atan2, "y", (np.float32([0.5, 2.0]), np.float32([1.5, -0.7]))),
    "solve": (solve, "v", (A, V)),
    "mixed": (mixed, mixed_result, (TREE,)),
}


def forward(name):
    """Return a callback with forward rules that call the callback itself."""
    function, result, _ = FUNCTIONS[name]
    f = jaxcb.pure(function, result=result)

    def mixed_jvp(primals, tangents):
        (p,), (t,) = primals, tangents
        turned = f({**p, "a": p["a"] + jnp.pi / 2})["s"]
        moved = jnp.sin(p["a"]) * t["b"][0]
        return f(p), {
            "s": turned * t["a"] + moved,
            "t": t["b"][1] * p["b"][0].sum() + p["b"][1] * t["b"][0].sum(),
        }

    rules = {
        "sine": lambda p, t: (f(*p), f(p[0] + jnp.pi / 2) * t[0]),
        "atan2": lambda p, t: (f(*p), (p[1] * t[0] - p[0] * t[1]) / (p[0] ** 2 + p[1] ** 2)),
        "solve": lambda p, t: (f(*p), jnp.linalg.inv(p[0]) @ (t[1] - t[0] @ f(*p))),
        "mixed": mixed_jvp,
    }
    f.defjvp(lambda p, t: rules[name](p, t))
    return f


def reverse(name):
    """Return a callback with reverse rules that call the callback itself."""
    function, result, _ = FUNCTIONS[name]
    f = jaxcb.pure(function, result=result)

    def solve_back(residuals, ct):
        a, returned_value = residuals
        back = f(a.T, ct)
        return -jnp.outer(back, returned_value), back

    def mixed_back(p, ct):
        turned = f({**p, "a": p["a"] + jnp.pi / 2})["s"]
        b = jnp.sin(p["a"]) * ct["s"] + p["b"][1] * ct["t"]
        return ({"a": turned @ ct["s"], "b": [b, p["b"][0].sum() * ct["t"]]},)

    rules = {
        "sine": (lambda x: (f(x), x), lambda x, ct: (f(x + jnp.pi / 2) * ct,)),
        "atan2": (
            lambda y, x: (f(y, x), (y, x)),
            lambda r, ct: (
                r[1] * ct / (r[0] ** 2 + r[1] ** 2),
                -r[0] * ct / (r[0] ** 2 + r[1] ** 2),
            ),
        ),
        "solve": (lambda a, v: (lambda s: (s, (a, s)))(f(a, v)), solve_back),
        "mixed": (lambda p: (f(p), p), mixed_back),
    }
    f.defvjp(*rules[name])
    return f


def finite(name):
    function, result, _ = FUNCTIONS[name]
    return jaxcb.pure(function, result=result, derivative="finite")


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("make", "order", "modes"),
    [(forward, 2, ("fwd", "rev")), (reverse, 2, ("rev",)), (finite, 1, ("fwd", "rev"))],
    ids=["defjvp", "defvjp", "finite"],
)
def test_derivatives_agree_with_numerical_ones(make, order, modes, name):
    """In float64, where finite differences have many correct digits."""
    with jax.enable_x64(True):
        args = jax.tree.map(lambda x: jnp.asarray(x, np.float64), FUNCTIONS[name][2])
        check_grads(jax.jit(make(name)), args, order, modes, atol=1e-5, rtol=1e-5)
