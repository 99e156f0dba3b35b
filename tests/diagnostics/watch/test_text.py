"""A variable in a few words."""

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics import brief


def watched(values, every=lambda x: x):
    """Return in a few words what `y` was, which had these values in the steps of a loop."""

    def step(_, x):
        y = every(jnp.log(jnp.exp(x)))
        return _, y

    with jaxcb.watching("y") as seen:
        jax.block_until_ready(jax.lax.scan(step, 0, jnp.float32(values)))
    (one,) = seen.series
    return brief(one)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, 2, 3], ("y 1 → 3", False)),
        ([2, 5, 2], ("y 2 → 2", False)),
        ([2, 2, 2], ("y 2", False)),
        ([[1, 3], [5, 7]], ("y mean 2 → 6", False)),
        ([1, NAN, NAN], ("y NaN from step 1", True)),
        ([1, NAN, 3], ("y NaN in step 1", True)),
        ([1, NAN, NAN, 3], ("y NaN in step 1", True)),
        ([1, 2, NAN], ("y NaN in step 2", True)),
        ([[1, 2], [1, INF], [NAN, 1]], ("y inf from step 1", True)),
    ],
)
def test_variable_is_told_from_its_first_step_to_its_last(values, words):
    assert watched(values) == words


def test_nothing_seen_is_told_by_what_became_of_the_block():
    with jaxcb.watching("y, z") as seen:
        assert str(seen) == "no value has arrived yet"
        y = jnp.ones(2)
    assert "no variable 'z' got an array of JAX" in str(seen)
    with pytest.raises(KeyError), jaxcb.watching("y") as seen:
        raise KeyError("x")
    assert str(seen) == "the block ended before a value arrived"
    with jaxcb.watching("z") as seen:
        y = y + 1
    assert str(seen) == "no variable that 'z' chooses got an array of JAX\nno value was NaN"
