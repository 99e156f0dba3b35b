"""Watching leaves the user's objects and the debugger as they are."""

import sys
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


def test_array_that_the_user_deletes_is_not_kept():
    kept = []

    def f():
        x = jnp.ones(3)
        kept.append(weakref.ref(x))
        del x
        count = len(kept)  # until Python 3.12, a frame has a copy of its variables up to here
        return count, kept[0]()

    with jaxcb.watching() as seen:
        found = f()
    assert found == (1, None)
    assert [row.expression for row in seen.rows] == ["x"]


def test_donated_array_in_a_container_is_no_error():
    def first_of(state):
        x = state[0]
        return x.shape

    state = [jnp.ones(3)]
    jax.jit(lambda x: x * 2, donate_argnums=0)(state[0])
    with jaxcb.watching() as seen:
        assert first_of(state) == (3,)
    assert not seen.rows


def test_trace_function_that_is_set_in_the_block_stays():
    def trace(frame, event, argument):
        return None

    def debug():
        with jaxcb.watching():
            sys.settrace(trace)
        return sys.gettrace()

    before = sys.gettrace()
    try:
        found = debug()
    finally:
        sys.settrace(before)
    assert found is trace
    assert trace(sys._getframe(), "call", None) is None


@pytest.mark.parametrize("callback", [
    lambda f, x: jaxcb.pure_callback(f, x, x), lambda f, x: jax.pure_callback(f, x, x)
])  # fmt: skip
def test_lines_of_host_functions_are_not_followed(callback):
    traced = []

    def inner(x):
        traced.append(sys._getframe().f_trace)
        return x + 1

    def on_host(x):
        traced.append(sys._getframe().f_trace)
        return inner(np.asarray(x))

    def run(x):
        y = callback(on_host, x)
        z = y * 2
        return z

    with jaxcb.watching() as seen:
        assert jax.jit(run)(jnp.float32(1)) == 4
        assert run(jnp.float32(1)) == 4
    assert traced == [None] * 4
    counts = {one.name: one.count for one in seen.series}
    assert counts == {"y": 2, "<lambda>()": 2, "z": 2}  # of `run` and `callback`
