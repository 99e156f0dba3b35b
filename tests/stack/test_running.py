"""Host calls that have not come back are found, with their lane, on whatever thread they run."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import active
from jupyter_jaxcb.stack import running_calls


class Stops:
    """A host function that stops at one value until it may go on."""

    def __init__(self):
        self.inside, self.go_on = threading.Event(), threading.Event()

    def __call__(self, x):
        if x == 2:
            self.inside.set()
            assert self.go_on.wait(60)
        return x


def lanes(f):
    return jax.vmap(f)(jnp.array([1.0, 3.0, 2.0, 4.0]))


PROGRAMS = {
    "eager": (lambda f: f(2.0), -1),
    "compiled": (lambda f: jax.jit(f)(2.0), -1),
    "in a scan": (lambda f: jax.lax.map(f, jnp.arange(4.0)), -1),
    "eager lanes": (lanes, 2),
    "compiled lanes": (lambda f: jax.jit(lanes, static_argnums=0)(f), 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("callback", [jaxcb.pure_callback, jaxcb.io_callback])
def test_call_that_has_not_come_back_is_found(name, callback):
    program, lane = PROGRAMS[name]
    host = Stops()

    def f(x):
        struct = jax.ShapeDtypeStruct((), np.float32)
        if callback is jaxcb.pure_callback:
            return callback(host, struct, x, vmap_method="sequential")
        return callback(host, struct, x)

    with jaxcb.record():
        thread = threading.Thread(target=lambda: jax.block_until_ready(program(f)))
        thread.start()
        assert host.inside.wait(60)
        (call,) = running_calls(active())
        now = active().clock()
        host.go_on.set()
        thread.join()
        assert running_calls(active()) == []
    assert call.lane == lane
    assert call.lowered.site.function == "Stops"
    assert 0 < call.start_ns <= now
    assert call.thread


def test_calls_of_two_threads_are_found_longest_first():
    hosts = [Stops(), Stops()]
    struct = jax.ShapeDtypeStruct((), np.float32)
    with jaxcb.record():
        threads = []
        for host in hosts:
            thread = threading.Thread(
                target=lambda host=host: jaxcb.pure_callback(host, struct, 2.0), name=f"{id(host)}"
            )
            thread.start()
            assert host.inside.wait(60)
            threads.append(thread)
        calls = running_calls(active())
        for host, thread in zip(hosts, threads, strict=True):
            host.go_on.set()
            thread.join()
    assert [call.thread for call in calls] == [f"{id(host)}" for host in hosts]
    assert calls[0].start_ns < calls[1].start_ns


def test_calls_of_another_recorder_are_not_told():
    from jupyter_jaxcb.recording import Recorder

    host, struct = Stops(), jax.ShapeDtypeStruct((), np.float32)
    with jaxcb.record():
        thread = threading.Thread(target=lambda: jaxcb.pure_callback(host, struct, 2.0))
        thread.start()
        assert host.inside.wait(60)
        assert running_calls(Recorder()) == []
        host.go_on.set()
        thread.join()
