"""How a block ends: on its last line, with an exception, with Ctrl-C."""

import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb


def watch_nothing():
    with jaxcb.watching():
        pass


def test_bad_value_on_the_last_line_ends_the_block():
    with pytest.raises(FloatingPointError, match="`a` gave NaN"):
        with jaxcb.watching(stop=True):
            a = jnp.sqrt(jnp.float32(-1))
    del a
    watch_nothing()


def test_reduction_of_the_user_that_fails_on_the_last_line_raises_its_exception():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        with jaxcb.watching(number=fails):
            a = jnp.float32(2) + 1
    del a
    watch_nothing()


def test_exception_of_the_block_is_raised_with_a_note_about_that_of_the_sink():
    def sink(step, values):
        raise KeyError("mine")

    with pytest.raises(ZeroDivisionError) as raised, jaxcb.watching(to=sink):
        a = jnp.float32(2) + 1
        1 / 0  # noqa: B018
    del a
    assert raised.value.__notes__ == ["at the end of the block, to= raised KeyError: 'mine'"]
    watch_nothing()
