"""Programs that scatter or reduce with a function of two numbers, which must have no effects."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb

PROGRAMS = {
    "add": lambda x: x.at[2].add(0.5),
    "multiply": lambda x: x.at[2].mul(0.5),
    "maximum": lambda x: x.at[2].max(0.5),
    "apply": lambda x: x.at[1].apply(lambda v: v * 2),
    "segments": lambda x: jax.ops.segment_sum(x, jnp.array([0, 0, 1, 1]), 2),
    "reduce": lambda x: lax.reduce(x, 0.0, lambda a, b: a * b + 0.0, (0,)),
    "reduce two": lambda x: lax.reduce(
        (x, x), (0.0, 0.0), lambda a, b: (a[0] + b[0] * 1.0, a[1] * b[1]), (0,)
    ),
    "window": lambda x: lax.reduce_window(x, 0.0, lambda a, b: a + b * 1.0, (2,), (1,), "VALID"),
    "gradient": lambda x: jax.grad(lambda x: x.at[1].mul(x[0]).sum())(x),
}


def in_loop(f):
    return lambda x: lax.scan(lambda c, _: (c, f(c)), x, None, length=2)[1]


@pytest.mark.parametrize("first", [None, "nan"])
@pytest.mark.parametrize("around", [lambda f: f, jax.jit, in_loop], ids=["eager", "jit", "scan"])
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_results_are_those_of_the_unwatched_program(f, around, first):
    x = jnp.arange(4.0)
    expected = around(f)(x)
    with jaxcb.watching(first=first):
        result = around(f)(x)
    jax.tree.map(np.testing.assert_array_equal, result, expected)


def test_nan_of_a_scattered_product_is_at_its_line():
    def f(x):
        return x.at[1].mul(jnp.inf)

    with jaxcb.watching() as seen:
        jax.jit(f)(jnp.zeros(3))
    assert "`x.at[1].mul(jnp.inf)` gave NaN" in str(seen.first_bad)
