"""Callbacks are thread-safe: every call gets its own arguments and returns to its own caller."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads
from tests.conformance._every import EVERY, call_of, returning_kinds
from tests.conformance._parameters import SCALAR, eager_or_jit, ordered_or_not

THREADS, ROUNDS = 8, 25


@pytest.mark.long
@eager_or_jit
@returning_kinds
def test_results_are_not_mixed_up(maker, compiled):
    """All threads run the same program, and each run makes exactly one host call."""
    lock, seen = threading.Lock(), []

    def host(x):
        x = np.asarray(x)
        with lock:
            seen.append(x.item())
        return x * 2

    f = compiled(maker(host, SCALAR))

    def work(number):
        for turn in range(ROUNDS):
            x = np.float32(number * ROUNDS + turn)
            assert f(x) == 2 * x

    in_threads(work, range(THREADS))
    assert sorted(seen) == list(range(THREADS * ROUNDS))


@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith("debug")])
def test_debug_callback_gets_every_value_of_every_thread(name):
    lock, seen = threading.Lock(), []

    def host(x):
        with lock:
            seen.append(np.asarray(x).item())

    f = jax.jit(call_of(name, host, None))

    def work(number):
        for turn in range(ROUNDS):
            f(np.float32(number * ROUNDS + turn))
        jax.effects_barrier()

    in_threads(work, range(THREADS))
    assert sorted(seen) == list(range(THREADS * ROUNDS))


def test_calls_in_flight_keep_their_results(our_pure):
    """The large operands are still being computed when the next program is dispatched."""
    like = jax.ShapeDtypeStruct((200, 200), np.float32)
    f = jax.jit(our_pure(lambda x: x + 1, like))
    work = jax.jit(lambda x, number: x @ x / 200 + number)
    ones = jnp.ones((200, 200))

    def many(number):
        results = [f(work(ones, number * 10 + turn)) for turn in range(5)]
        for turn, returned_value in enumerate(results):
            np.testing.assert_allclose(returned_value, number * 10 + turn + 2)

    in_threads(many, range(THREADS))


@ordered_or_not
def test_ordered_calls_of_each_thread_keep_their_order(io, ordered):
    """Unordered calls all happen, in any order."""
    lock, seen = threading.Lock(), []

    def host(number, turn):
        with lock:
            seen.append((np.asarray(number).item(), np.asarray(turn).item()))

    f = jax.jit(lambda number, turn: io(host, None, ordered=ordered)(number, turn))

    def work(number):
        for turn in range(ROUNDS):
            f(number, turn)
        jax.effects_barrier()

    in_threads(work, range(THREADS))
    by_thread = {n: [turn for number, turn in seen if number == n] for n in range(THREADS)}
    expected = {n: list(range(ROUNDS)) for n in range(THREADS)}
    assert (
        by_thread == expected
        if ordered
        else {n: sorted(t) for n, t in by_thread.items()} == expected
    )


def test_batch_elements_of_several_threads_are_not_mixed_up(our_pure):
    f = jax.jit(jax.vmap(our_pure(lambda x: x * 3, SCALAR, vmap_method="sequential")))

    def work(number):
        xs = np.arange(50, dtype=np.float32) + 1000 * number
        for _ in range(5):
            np.testing.assert_array_equal(f(xs), 3 * xs)

    in_threads(work, range(THREADS))


def test_programs_compiled_in_several_threads_are_not_mixed_up(our_pure):
    def work(number):
        for turn in range(5):
            f = jax.jit(our_pure(lambda x, shift=100 * number + turn: x + shift, SCALAR))
            assert f(np.float32(1)) == 100 * number + turn + 1

    in_threads(work, range(THREADS))


def test_functions_decorated_in_several_threads_are_not_mixed_up():
    """All functions have the same name."""

    def work(number):
        for turn in range(10):

            @jaxcb.pure(result="x")
            def shift(x, by=number * 10 + turn):
                return x + by

            assert jax.jit(lambda x, shift=shift: shift(x))(np.float32(0)) == number * 10 + turn

    in_threads(work, range(THREADS))


@pytest.mark.parametrize("flavor", ["pure", "io"])
def test_host_functions_run_at_the_same_time(flavor):
    """Each waits for those of all other threads, which would time out if a lock were held."""
    meeting = threading.Barrier(THREADS)

    def meet(x):
        if x >= 0:
            meeting.wait(timeout=30)
        return np.asarray(x)

    f = jax.jit(EVERY[f"{flavor} drop-in"](meet, SCALAR))
    f(np.float32(-1)).block_until_ready()
    in_threads(lambda number: f(np.float32(number)).block_until_ready(), range(THREADS))


def test_eager_host_functions_run_at_the_same_time(our_pure):
    meeting = threading.Barrier(THREADS)

    def meet(x):
        meeting.wait(timeout=30)
        return x

    f = our_pure(meet, SCALAR)
    in_threads(lambda number: f(np.float32(number)), range(THREADS))
