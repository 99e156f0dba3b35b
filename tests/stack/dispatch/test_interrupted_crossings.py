"""KeyboardInterrupt between any two instructions of a crossing."""

import _thread
import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import stop_button
from tests.stack._interrupts import Interrupts

pytestmark = pytest.mark.slow


def double(x):
    return 2 * x


def write_double(out, x):
    out[...] = 2 * x


pure = jaxcb.pure(double, result="x")
io = jaxcb.io(double, result="x", ordered=True)
in_dictionary = jaxcb.pure(lambda x: {"y": 2 * x}, result=lambda x: {"y": x})
spread = jaxcb.pure(double, result="x", executor="threads")
buffer = jaxcb.buffer(write_double, result="x")
debug = jaxcb.debug(double)

# With so few numbers, JAX runs a program on the calling thread.
PROGRAMS = {
    "pure": (pure, 1.0),
    "io": (io, 1.0),
    "debug": (lambda x: (debug(x), 2 * x)[1], 1.0),
    "buffer": (buffer, 1.0),
    "elements": (jax.vmap(pure), [1.0, 2.0]),
    "pytree": (lambda x: jax.vmap(in_dictionary)(x)["y"], [[1.0], [2.0]]),
    "batch elements of a buffer": (jax.vmap(buffer), [1.0, 2.0]),
    "executor": (jax.vmap(spread), [1.0, 2.0]),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("recorded", [False, True], ids=["", "recorded"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupt_anywhere_in_a_crossing_is_a_keyboard_interrupt(name, recorded):
    function, x = PROGRAMS[name]
    x = jnp.asarray(x, jnp.float32)
    program = jax.jit(function)
    expected, n, interrupted = np.asarray(program(x)), 0, 0
    with jaxcb.record() if recorded else contextlib.nullcontext():
        while True:
            n += 1
            interrupts = Interrupts(n)
            try:
                with interrupts:
                    program(x).block_until_ready()
                assert interrupts.left > 0, f"lost at {interrupts.place}"
            except KeyboardInterrupt:
                pass
            np.testing.assert_array_equal(program(x), expected, interrupts.place)
            if interrupts.left > 0:
                break
            interrupted += 1
    assert interrupted > 3


class Memory(bytearray):
    """Memory that raises an interrupt when XLA frees it, without running Python code."""

    __del__ = _thread.interrupt_main


@pytest.mark.parametrize("in_cell", [False, True], ids=["script", "cell"])
def test_interrupt_between_two_crossings_is_a_keyboard_interrupt(in_cell):
    """It stays pending while XLA runs, until the first Python instruction of the next crossing."""
    made = []

    @jaxcb.io(result="x", ordered=True)
    def first(x):
        made.append("first")
        return np.frombuffer(Memory(x.tobytes()), x.dtype).reshape(())

    @jaxcb.io(result="x", ordered=True)
    def second(x):
        made.append("second")
        return x

    program = jax.jit(lambda x: second(first(x)))
    stop = stop_button()
    if in_cell:
        stop.begin()
    try:
        with pytest.raises(KeyboardInterrupt):
            program(jnp.float32(1)).block_until_ready()
    finally:
        stop.close()
    assert made == ["first"]
