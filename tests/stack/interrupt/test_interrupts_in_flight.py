"""Ctrl-C during asynchronous programs refuses their pending host calls, and no others."""

import contextlib
import functools
import os
import random
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack import interrupt, release
from jupyter_jaxcb.stack.interrupt import refusal

pytestmark = pytest.mark.slow

MOMENTS = int(os.environ.get("JAXCB_MOMENTS", "30"))  # `make soak` has more
STRUCT = jax.ShapeDtypeStruct((), np.float32)
CALLBACKS = {
    "pure": lambda f, x: jaxcb.pure_callback(f, STRUCT, x, vmap_method="sequential"),
    "io": lambda f, x: jaxcb.io_callback(f, STRUCT, x),
    "debug": lambda f, x: (jaxcb.debug_callback(f, x), x)[1],
}


def in_new_thread(test):
    """Run the test in a new thread, where no host call has failed."""

    @functools.wraps(test)
    def run(**arguments):
        failed = []

        def body():
            try:
                test(**arguments)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join(100)
        assert not thread.is_alive()
        if failed:
            raise failed[0]

    return run


def counted(calls):
    def host(x):
        calls.append(threading.current_thread().name)
        return np.float32(x)

    return host


@pytest.fixture(scope="module")
def late():
    """Return a function that returns a number still being computed."""
    big = jnp.ones((1000, 1000))

    @jax.jit
    def slowly(x):
        for _ in range(8):
            x = x @ big / 1000
        return x[0, 0]

    slowly(big).block_until_ready()
    return lambda: slowly(big)


@pytest.fixture
def worker(late):
    """Run a program on one of XLA's threads, because its operand is still being computed."""

    def run(f):
        compiled = jax.jit(f).lower(STRUCT).compile()
        return compiled(late())

    yield run
    release()
    refusal.until = None


class Holds:
    """A host function that blocks in one of its calls until `go_on` is set."""

    def __init__(self, at=1):
        self.at, self.calls, self.inside, self.go_on = at, 0, threading.Event(), threading.Event()

    def __call__(self, x):
        self.calls += 1
        if self.calls == self.at:
            assert threading.current_thread() is not threading.main_thread()
            self.inside.set()
            assert self.go_on.wait(60)
        return np.float32(x)


def interrupted(worker, many, name, host):
    result = worker(many(CALLBACKS[name], host))
    assert host.inside.wait(60)
    interrupt()
    assert host.calls == 4
    host.go_on.set()
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as raised:
        jax.block_until_ready(result)
        jax.effects_barrier()
    assert isinstance(jaxcb.host_error(raised.value), KeyboardInterrupt)


@pytest.mark.long
@pytest.mark.parametrize("name", CALLBACKS)
@in_new_thread
def test_every_program_in_flight_is_refused_and_none_after_it(worker, name):
    first, refused, called = Holds(), [], []
    others = [
        jax.jit(lambda x, y: CALLBACKS[name](counted(refused), x + y)).lower(STRUCT, 1.0).compile()
        for _ in range(6)
    ]
    result = worker(lambda x: CALLBACKS["io"](first, x))
    assert first.inside.wait(60)
    waiting = [f(1.0, 2.0) for f in others]
    interrupt()
    after = jax.jit(lambda x: CALLBACKS["pure"](counted(called), x))(
        7.0
    )  # queued after all of these
    first.go_on.set()
    assert after == 7
    assert refused == []
    assert called != [threading.current_thread().name]  # one of XLA's threads
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)):
        jax.block_until_ready(result)
    assert len(waiting) == 6 and refusal.until is None


@in_new_thread
def test_calls_of_another_python_thread_are_not_refused(worker):
    held, results = Holds(), []
    result = worker(lambda x: CALLBACKS["pure"](held, x))
    assert held.inside.wait(60)
    interrupt()
    run = lambda: results.append(jax.jit(lambda x: CALLBACKS["pure"](counted([]), x))(3.0))  # noqa: E731
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    held.go_on.set()
    assert [float(returned_value) for returned_value in results] == [3]
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)):
        jax.block_until_ready(result)


class Loops:
    """A host function that runs Python code until it is interrupted."""

    def __init__(self):
        self.inside, self.ended_by, self.calls = threading.Event(), None, 0

    def __call__(self, x):
        self.calls += 1
        try:
            for _ in range(10_000_000_000):
                self.inside.set()
        except BaseException as error:
            self.ended_by = error
            raise
        return np.float32(x)


@pytest.mark.long
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("name", CALLBACKS)
@in_new_thread
def test_python_host_function_ends_and_the_next_run_completes(worker, name, recorded):
    host, after = Loops(), []
    with jaxcb.record() if recorded else contextlib.nullcontext():
        result = worker(lambda x: CALLBACKS[name](host, x))
        assert host.inside.wait(60)
        interrupt()
        assert worker(lambda x: CALLBACKS["pure"](counted(after), x)) == 1
    assert isinstance(host.ended_by, KeyboardInterrupt)
    assert (host.calls, len(after)) == (1, 1)
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as raised:
        jax.block_until_ready(result)
        jax.effects_barrier()
    assert jaxcb.host_error(raised.value) is host.ended_by


@in_new_thread
def test_interrupts_at_random_moments_do_not_reach_another_run(worker):
    """The host functions run between a few and very many bytecodes."""
    draw = random.Random(7)
    inside = threading.Event()
    loops = 0

    def some(x):
        inside.set()
        for _ in range(loops):
            sum(range(10))
        return x + np.float32(1)

    small = jnp.ones((200, 200))
    slowly = jax.jit(lambda x: (x @ small @ small)[0, 0] * 0)
    first = jax.jit(lambda x: CALLBACKS["pure"](some, x)).lower(STRUCT).compile()
    second = jax.jit(
        lambda x: jax.lax.fori_loop(
            0, 9, lambda i, y: CALLBACKS["pure"](lambda x: np.float32(x), y) * 0 + i, x
        )
    )
    second = second.lower(STRUCT).compile()
    for _ in range(MOMENTS):
        loops = draw.choice([0, 1, 10, 3_000, 100_000])
        inside.clear()
        result = first(slowly(small))
        assert inside.wait(60)
        for _ in range(draw.choice([0, 10, 1_000])):
            pass
        interrupt()
        assert second(slowly(small)) == 8
        try:
            assert result == 1
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            assert isinstance(jaxcb.host_error(error), KeyboardInterrupt)
        release()


@in_new_thread
def test_keyboard_interrupt_in_a_block_of_one_thread_does_not_end_calls_of_others(worker):
    host = Holds()
    result = worker(lambda x: CALLBACKS["pure"](host, x))
    assert host.inside.wait(60)

    def block():
        with contextlib.suppress(KeyboardInterrupt), jaxcb.record():
            raise KeyboardInterrupt

    thread = threading.Thread(target=block)
    thread.start()
    thread.join(60)
    host.go_on.set()
    assert result == 1
