"""JAX's own ordered callbacks in the condition of a vmapped while loop, which make it go wrong."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb

pytestmark = [pytest.mark.kept, pytest.mark.usefixtures("nothing_compiled_before")]

LIMITS = np.array([1, 3], np.float32)


def look(x):
    pass


def jax_callback(x):
    jax.debug.callback(look, x, ordered=True)


def jax_print(x):
    jax.debug.print("{}", x, ordered=True)


def unordered(x):
    jax.debug.callback(look, x)


def counting(call):
    def count(limit):
        def more(c):
            call(c)
            return c < limit

        return lax.while_loop(more, lambda c: c + 1, np.float32(0))

    return count


def observed(f):
    """Run `f` while JAX's callbacks are observed; return its result and the warnings."""
    with warnings.catch_warnings(record=True) as caught, jaxcb.observe_jax():
        warnings.simplefilter("default")
        result = jax.block_until_ready(f())
        jax.effects_barrier()
    return result, [one for one in caught if one.category is jaxcb.FinishedElementsWarning]


@pytest.mark.parametrize("compiled", [jax.jit, lambda f: f], ids=["jit", "eager"])
@pytest.mark.parametrize("call", [jax_callback, jax_print], ids=["callback", "print"])
def test_wrong_numbers_of_jaxs_own_loop_are_flagged_once_at_the_line(call, compiled):
    loop = compiled(jax.vmap(counting(call)))
    result, (warning,) = observed(lambda: loop(LIMITS))
    assert result.tolist() == [3, 3]  # JAX's; right is 1, 3
    assert (warning.filename, warning.lineno) == (__file__, call.__code__.co_firstlineno + 1)
    assert "can be wrong" in str(warning.message) and "ordered" in str(warning.message)


@pytest.mark.parametrize(
    "f",
    [
        lambda: jax.jit(jax.vmap(counting(unordered)))(LIMITS),
        lambda: jax.jit(jax.vmap(counting(jaxcb.debug(look, ordered=True))))(LIMITS),
        lambda: jnp.stack([jax.jit(counting(jax_callback))(limit) for limit in LIMITS]),
    ],
    ids=["unordered", "ours", "without vmap"],
)
def test_loops_with_right_numbers_are_not_flagged(f):
    result, flagged = observed(f)
    assert (result.tolist(), flagged) == ([1, 3], [])


def test_ordered_callback_in_the_body_alone_is_not_flagged():
    def count(limit):
        def step(c):
            jax_callback(c)
            return c + 1

        return lax.while_loop(lambda c: c < limit, step, np.float32(0))

    result, flagged = observed(lambda: jax.jit(jax.vmap(count))(LIMITS))
    assert (result.tolist(), flagged) == ([1, 3], [])


def test_ordered_callback_beside_an_ordered_one_of_ours_is_not_flagged():
    """With one of ours in the condition, the loop is lowered so that its numbers are right."""
    ours = jaxcb.debug(look, ordered=True)
    both = counting(lambda c: (jax_callback(c), ours(c)))
    result, flagged = observed(lambda: jax.jit(jax.vmap(both))(LIMITS))
    assert (result.tolist(), flagged) == ([1, 3], [])
