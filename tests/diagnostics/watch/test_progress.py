"""While a watched program runs, the step of each loop and the time left are known."""

import threading

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb


def test_steps_of_nested_loops_and_the_time_left_are_told_while_the_program_runs():
    reached, goes_on, told = threading.Event(), threading.Event(), []

    def waits(i, j):
        if (i, j) in ((0, 1), (2, 3)):
            reached.set()
            assert goes_on.wait(60)
            goes_on.clear()
        return np.float32(0)

    def inner(c, ij):
        i, j = ij
        y = c + 1.0
        z = y + jax.pure_callback(waits, jax.ShapeDtypeStruct((), jnp.float32), i, j)
        return z, None

    def outer(c, i):
        steps = jnp.stack([jnp.full(5, i), jnp.arange(5)])
        return jax.lax.scan(inner, c, (steps[0], steps[1]))[0], None

    def run():
        with jaxcb.watching("y, z") as seen:
            seens.append(seen)
            jax.block_until_ready(jax.lax.scan(outer, 0.0, jnp.arange(4))[0])

    seens = []
    thread = threading.Thread(target=run)
    thread.start()
    for seconds in (10.0, 20.0):
        assert reached.wait(60)
        reached.clear()
        told.append(seens[0].so_far(seconds))
        if seconds == 20:
            told.append(seens[0].so_far(110.0))
        goes_on.set()
    thread.join(60)
    assert told == [
        "step 0 of 4, inner step 0 of 5",
        "step 2 of 4, inner step 2 of 5, about 7 s left",
        "step 2 of 4, inner step 2 of 5, about 67 s left (part of it to watch 2 variables in each "
        "step: name fewer, or send fewer steps with every=)",
    ]


def test_loops_of_unknown_length_have_their_step_and_no_time():
    def body(x):
        y = x + 1.0
        return y

    with jaxcb.watching() as seen:
        assert seen.so_far(1.0) == ""
        jax.lax.while_loop(lambda x: x < 5, body, 0.0)
        assert seen.so_far(2.0) == "step 4"
    with jaxcb.watching() as seen:
        for _ in range(2):
            x = jnp.float32(1)
            told = seen.so_far(3.0)
    assert told == "step 1"
    del x
