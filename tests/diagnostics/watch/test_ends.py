"""How a block ends: on its last line, with an exception, with Ctrl-C."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.notes import Block, Store


def watch_nothing():
    with jaxcb.watching():
        pass


def test_bad_value_on_the_last_line_ends_the_block():
    with pytest.raises(FloatingPointError, match="`a` gave NaN"):
        with jaxcb.watching(stop=True):
            a = jnp.sqrt(jnp.float32(-1))
    del a
    watch_nothing()


def test_bad_value_in_a_block_of_one_line_ends_it():
    with pytest.raises(FloatingPointError, match="`a` gave NaN"):
        with jaxcb.watching(stop=True): a = jnp.sqrt(jnp.float32(-1))  # fmt: skip # noqa: E701
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


def test_variable_is_not_assigned_by_a_line_that_raises():
    def fails():
        raise KeyError("mine")

    a = jnp.float32(np.nan)
    with jaxcb.watching() as seen:
        try:
            a = fails()
        except KeyError:
            pass
        b = [x * 2 for x in iter([jnp.float32(3)])]
    assert [(one.name, one.max.item()) for one in seen.series if one.name != "x"] == [("b[0]", 6)]
    assert seen.first_bad is None
    del a, b


def test_interrupt_while_a_compiled_loop_sends_its_steps_is_a_keyboard_interrupt(monkeypatch):
    def body(x, _):
        y = jnp.sin(x)
        return y, None

    add, count = Store.add, []

    def add_or_press(store, block, numbers):
        count.append(block)
        if len(count) == 3:
            raise KeyboardInterrupt
        add(store, block, numbers)

    monkeypatch.setattr(Store, "add", add_or_press)
    with pytest.raises(KeyboardInterrupt), jaxcb.watching("y") as seen:
        jax.block_until_ready(jax.lax.scan(body, 1.0, length=5))
    assert len(seen.rows) == 2
    monkeypatch.undo()
    watch_nothing()


def test_interrupt_before_the_numbers_of_a_step_are_received_is_a_keyboard_interrupt(monkeypatch):
    def body(x, _):
        y = jnp.sin(x)
        return y, None

    def press(block, *arrays):  # Python looks for signals where a function begins
        raise KeyboardInterrupt

    monkeypatch.setattr(Block, "__call__", press)
    with pytest.raises(KeyboardInterrupt), jaxcb.watching("y"):
        jax.block_until_ready(jax.lax.scan(body, 1.0, length=5))
    monkeypatch.undo()
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


def test_named_alias_has_a_row_of_its_own():
    with jaxcb.watching("loss, best") as seen:
        loss = jnp.float32(1) + 1
        best = loss
    assert [one.name for one in seen.series] == ["loss", "best"]
    del best
