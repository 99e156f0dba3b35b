"""Ctrl-C while programs run behind Python's back: what waits is refused, and nothing else."""

import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack import _interrupts, interrupt, release

STRUCT = jax.ShapeDtypeStruct((), np.float32)
CALLBACKS = {
    "pure": lambda f, x: jaxcb.pure_callback(f, STRUCT, x, vmap_method="sequential"),
    "io": lambda f, x: jaxcb.io_callback(f, STRUCT, x),
    "debug": lambda f, x: (jaxcb.debug_callback(f, x), x)[1],
}


def in_own_thread(test):
    """A thread on which a host call has failed dispatches nothing behind its back on JAX 0.8."""

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


@pytest.fixture
def worker():
    """Runs a program whose operand is still being computed: on a thread of XLA's."""
    big = jnp.ones((1200, 1200))

    @jax.jit
    def slowly(x):
        for _ in range(8):
            x = x @ big / 1200
        return x[0, 0]

    slowly(big).block_until_ready()

    def run(f):
        compiled = jax.jit(f).lower(STRUCT).compile()
        return compiled(slowly(big))

    yield run
    release()
    _interrupts.window = None


class Holds:
    """A host function that stops at one of its calls until it may go on."""

    def __init__(self, at=1):
        self.at, self.calls, self.inside, self.go_on = at, 0, threading.Event(), threading.Event()

    def __call__(self, x):
        self.calls += 1
        if self.calls == self.at:
            assert threading.current_thread() is not threading.main_thread()
            self.inside.set()
            assert self.go_on.wait(60)
        return np.float32(x)


def loop(callback, host):
    return lambda x: jax.lax.fori_loop(0, 10_000, lambda i, y: callback(host, y), x)


def lanes(callback, host):
    return lambda x: jax.vmap(lambda x: callback(host, x))(x + jnp.arange(10_000.0))


@pytest.mark.parametrize("many", [loop, lanes])
@pytest.mark.parametrize("name", ["pure", "io", "debug"])
@pytest.mark.parametrize("recorded", [True, False])
@in_own_thread
def test_calls_that_wait_are_refused_and_the_running_one_ends(worker, many, name, recorded):
    host = Holds(at=4)
    if recorded:
        with jaxcb.record() as r:
            interrupted(worker, many, name, host)
        assert {call.error for call in r.recording.calls_of("Holds")} == {None}
    else:
        interrupted(worker, many, name, host)
    assert host.calls == 4


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


@pytest.mark.parametrize("name", CALLBACKS)
@in_own_thread
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
    after = jax.jit(lambda x: CALLBACKS["pure"](counted(called), x))(7.0)  # behind all of these
    first.go_on.set()
    assert after == 7
    assert refused == []
    assert called != [threading.current_thread().name]  # a thread of XLA's
    jax.block_until_ready(result)
    assert len(waiting) == 6 and _interrupts.window is None


@in_own_thread
def test_calls_of_another_thread_of_pythons_are_not_refused(worker):
    held, answers = Holds(), []
    result = worker(lambda x: CALLBACKS["pure"](held, x))
    assert held.inside.wait(60)
    interrupt()
    run = lambda: answers.append(jax.jit(lambda x: CALLBACKS["pure"](counted([]), x))(3.0))  # noqa: E731
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    held.go_on.set()
    assert [float(answer) for answer in answers] == [3]
    assert result == 1
