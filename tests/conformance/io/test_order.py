"""Ordered io callbacks keep program order: in loops, across programs, and together with JAX's."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.conformance._parameters import FIVE_FROM_0, eager_or_jit, like_first, ordered_or_not


def in_scan(f):
    return lax.scan(lambda c, x: (c, f(x)), 0, FIVE_FROM_0)[1]


def in_fori_loop(f):
    return lax.fori_loop(
        0, 5, lambda i, c: c.at[i].set(f(i.astype(jnp.float32))), jnp.zeros(5, jnp.float32)
    )


def in_while_loop(f):
    def step(carry):
        i, c = carry
        return i + 1, c.at[i].set(f(i.astype(jnp.float32)))

    return lax.while_loop(lambda carry: carry[0] < 5, step, (0, jnp.zeros(5, jnp.float32)))[1]


loops = pytest.mark.parametrize(
    "loop", [in_scan, in_fori_loop, in_while_loop], ids=lambda loop: loop.__name__
)


@pytest.mark.long
@eager_or_jit
@ordered_or_not
@loops
def test_loops_call_once_per_step(io, run, echo, loop, ordered, compiled):
    """The steps run in sequence, so the calls are in order with or without ``ordered=True``."""
    host, seen = echo()
    f = io(host, like_first, ordered=ordered)
    np.testing.assert_array_equal(run(compiled(lambda: loop(f))), FIVE_FROM_0)
    assert seen == [0, 1, 2, 3, 4]


def test_ordered_callback_in_a_while_predicate_runs_as_often_as_the_predicate(io, run, echo):
    """A loop of three steps evaluates its predicate four times."""
    host, seen = echo()
    f = io(host, like_first, ordered=True)
    result = run(
        jax.jit(lambda n: lax.while_loop(lambda c: f(c) < n, lambda c: c + 1, np.float32(0))), 3.0
    )
    assert result == 3
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("taken", [True, False])
@ordered_or_not
def test_cond_calls_only_the_taken_branch(io, run, echo, taken, ordered):
    (yes, yes_seen), (no, no_seen) = echo(), echo()
    f, g = io(yes, like_first, ordered=ordered), io(no, like_first, ordered=ordered)
    result = run(jax.jit(lambda p, x: lax.cond(p, f, lambda x: -g(x), x)), taken, np.float32(2))
    assert result == (2 if taken else -2)
    assert (yes_seen, no_seen) == (([2], []) if taken else ([], [2]))


class Overtaking:
    """Two host functions that record whether `second` starts before `first` has finished."""

    def __init__(self):
        self.second_began = threading.Event()
        self.seen = []

    def first(self, x):
        self.second_began.clear()
        overtaken = self.second_began.wait(timeout=0.05)  # give `second` time to start
        self.seen.append(("first", float(x), overtaken))

    def second(self, x):
        self.second_began.set()
        self.seen.append(("second", float(x), False))


def ordered_pair(io, race):
    return io(race.first, None, ordered=True), io(race.second, None, ordered=True)


def test_ordered_callbacks_of_one_program_run_in_program_order(io, run):
    """The operand of the second callback is ready first, and it still waits for the first."""
    race = Overtaking()
    f, g = ordered_pair(io, race)

    def program(x):
        f(jnp.linalg.norm(jnp.outer(x, x) @ jnp.outer(x, x)) * 0)  # ready after g's operand
        g(1.0)
        g(2.0)

    run(jax.jit(program), FIVE_FROM_0)
    assert race.seen == [("first", 0, False), ("second", 1, False), ("second", 2, False)]


def test_ordered_callbacks_of_two_programs_run_in_program_order(io):
    """The caller dispatches all programs without waiting for any of them."""
    race = Overtaking()
    f, g = ordered_pair(io, race)
    slow = jax.jit(lambda x: f(jnp.linalg.norm(jnp.outer(x, x)) * 0))
    fast = jax.jit(lambda x: g(x))
    for _ in range(3):
        slow(FIVE_FROM_0)
        fast(1.0)
    jax.effects_barrier()
    assert race.seen == 3 * [("first", 0, False), ("second", 1, False)]


def test_eager_ordered_callbacks_run_in_the_order_of_the_lines(io):
    """Outside jit, JAX runs every call as a program."""
    race = Overtaking()
    f, g = ordered_pair(io, race)
    f(0.0)
    g(1.0)
    g(2.0)
    jax.effects_barrier()
    assert race.seen == [("first", 0, False), ("second", 1, False), ("second", 2, False)]


def test_ordered_callbacks_of_two_inner_jits_and_a_loop_keep_their_order(io, run, echo):
    host, seen = echo()
    f = io(host, like_first, ordered=True)

    def program(x):
        jax.jit(f)(x)
        lax.fori_loop(0, 3, lambda i, c: c + f(x + 1 + i), x)
        return jax.jit(lambda x: f(x) * 2)(x + 4)

    assert run(jax.jit(program), np.float32(10)) == 28
    assert seen == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("ours_is_first", [True, False])
def test_our_ordered_callbacks_and_those_of_jax_keep_one_order(our_io, jax_io, run, ours_is_first):
    """Within a program and across programs."""
    race = Overtaking()
    makers = (our_io, jax_io) if ours_is_first else (jax_io, our_io)
    f, g = (
        make(host, None, ordered=True)
        for make, host in zip(makers, (race.first, race.second), strict=True)
    )

    def program(x):
        f(x)
        g(x + 1)

    run(jax.jit(program), 0.0)
    jax.jit(lambda x: f(x))(0.0)
    jax.jit(lambda x: g(x))(1.0)
    jax.effects_barrier()
    assert race.seen == 2 * [("first", 0, False), ("second", 1, False)]
