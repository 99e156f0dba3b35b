"""A pure callback works under every transformation and in every control-flow primitive."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.conformance._parameters import FIVE_TO_2, ZERO, like_first
from tests.conformance.conftest import PURE


def while_sum(f, x):
    def step(carry):
        number, total = carry
        return number + 1, total + f(jnp.asarray(x)[number])

    return lax.while_loop(lambda carry: carry[0] < 5, step, (0, ZERO))[1]


PLACES = {  # name: a function of (f, x), its expected value, the number of host calls
    "plain": (lambda f, x: f(x), np.sin(FIVE_TO_2), 1),
    "jit": (lambda f, x: jax.jit(f)(x), np.sin(FIVE_TO_2), 1),
    "jit in jit": (lambda f, x: jax.jit(lambda x: jax.jit(f)(x) + 1)(x), np.sin(FIVE_TO_2) + 1, 1),
    "vmap": (lambda f, x: jax.vmap(f)(x), np.sin(FIVE_TO_2), 5),
    "jit of vmap": (lambda f, x: jax.jit(jax.vmap(f))(x), np.sin(FIVE_TO_2), 5),
    "vmap of jit": (lambda f, x: jax.vmap(jax.jit(f))(x), np.sin(FIVE_TO_2), 5),
    "lax.map": (lambda f, x: lax.map(f, x), np.sin(FIVE_TO_2), 5),
    "scan": (
        lambda f, x: lax.scan(lambda c, a: (c + f(a), None), ZERO, x)[0],
        np.sin(FIVE_TO_2).sum(),
        5,
    ),
    "scan, every step's value": (
        lambda f, x: lax.scan(lambda c, a: (c, f(a)), 0, x)[1],
        np.sin(FIVE_TO_2),
        5,
    ),
    "scan, twice a step": (
        lambda f, x: lax.scan(lambda c, a: (c + f(a), f(a)), ZERO, x)[0] * 2,
        2 * np.sin(FIVE_TO_2).sum(),
        10,
    ),
    "fori_loop": (
        lambda f, x: lax.fori_loop(0, 5, lambda i, c: c + f(jnp.asarray(x)[i]), ZERO),
        np.sin(FIVE_TO_2).sum(),
        5,
    ),
    "while_loop": (while_sum, np.sin(FIVE_TO_2).sum(), 5),
    "vmap of scan": (
        lambda f, x: jax.vmap(lambda a: lax.scan(lambda c, b: (c + f(a * b), None), ZERO, x)[0])(x),
        np.sin(FIVE_TO_2[:, None] * FIVE_TO_2).sum(1),
        25,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("place", "expected", "calls"), PLACES.values(), ids=PLACES)
def test_callback_gives_the_values_of_numpy_everywhere(pure, spy, run, place, expected, calls):
    host, seen = spy(np.sin)
    f = pure(host, like_first, vmap_method="sequential")
    np.testing.assert_allclose(run(place, f, FIVE_TO_2), expected, rtol=1e-5)
    assert len(seen) == calls


@pytest.mark.parametrize("taken", [True, False])
def test_cond_calls_only_the_taken_branch(pure, spy, run, taken):
    (sin, sins), (cos, coss) = spy(np.sin), spy(np.cos)
    f, g = pure(sin, like_first), pure(cos, like_first)
    result = run(jax.jit(lambda yes, x: lax.cond(yes, f, g, x)), taken, FIVE_TO_2)
    np.testing.assert_allclose(result, np.sin(FIVE_TO_2) if taken else np.cos(FIVE_TO_2), rtol=1e-6)
    assert (len(sins), len(coss)) == (taken, not taken)


@pytest.mark.parametrize("branch", [0, 1, 2])
def test_switch_calls_only_the_taken_branch(pure, spy, run, branch):
    functions = (np.sin, np.cos, np.tanh)
    hosts, lists = zip(*map(spy, functions), strict=True)
    f = jax.jit(lambda i, x: lax.switch(i, [pure(host, like_first) for host in hosts], x))
    np.testing.assert_allclose(run(f, branch, FIVE_TO_2), functions[branch](FIVE_TO_2), rtol=1e-6)
    assert [len(seen) for seen in lists] == [number == branch for number in range(3)]


def test_vmapped_cond_with_a_batched_predicate_calls_both_branches_as_jax_does(pure, spy, run):
    """JAX turns the cond into a select, which needs both values for every batch element.

    A decorated function is called for the elements that take its branch.
    """
    (sin, sins), (cos, coss) = spy(np.sin), spy(np.cos)
    f, g = (pure(host, like_first, vmap_method="sequential") for host in (sin, cos))
    above = FIVE_TO_2 > 1
    result = run(jax.vmap(lambda yes, x: lax.cond(yes, f, g, x)), above, FIVE_TO_2)
    np.testing.assert_allclose(
        result, np.where(above, np.sin(FIVE_TO_2), np.cos(FIVE_TO_2)), rtol=1e-6
    )
    is_exact = pure is PURE["decorator"]
    assert len(sins) == (above.sum() if is_exact else 5)
    assert len(coss) == ((~above).sum() if is_exact else 5)
