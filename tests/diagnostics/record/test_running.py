"""Host calls that are still running are found on any thread, with their batch element."""

import socket
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics import running_calls
from jupyter_jaxcb.recording import active
from jupyter_jaxcb.report import summarize


def test_run_that_has_not_ended_is_not_counted_as_completed():
    host = Stops()

    def fails(x):
        if x < 0:
            raise ValueError("no luck")
        return host(x)

    @jax.jit
    def program(x):
        y = jaxcb.io_callback(fails, x, x, ordered=True)
        return jaxcb.io_callback(np.sin, x, y, ordered=True)

    with jaxcb.record() as r:
        with pytest.raises(jax.errors.JaxRuntimeError):
            jax.block_until_ready(program(-1.0))
        thread = threading.Thread(target=lambda: jax.block_until_ready(program(2.0)))
        thread.start()
        assert host.inside.wait(60)
    host.go_on.set()
    thread.join()
    _, later = summarize(r.recording)
    assert (later.calls, later.status.value) == (0, "unknown")  # the second run may call it yet
    assert later.reason == "only a part of a run of its program is in this recording"


class Stops:
    """A host function that waits when called with 2, until `go_on` is set."""

    def __init__(self):
        self.inside, self.go_on = threading.Event(), threading.Event()

    def __call__(self, x):
        if x == 2:
            self.inside.set()
            assert self.go_on.wait(60)
        return x


def elements(f):
    return jax.vmap(f)(jnp.array([1.0, 3.0, 2.0, 4.0]))


PROGRAMS = {
    "eager": (lambda f: f(2.0), -1),
    "compiled": (lambda f: jax.jit(f)(2.0), -1),
    "in a scan": (lambda f: jax.lax.map(f, jnp.arange(4.0)), -1),
    "eager batch elements": (elements, 2),
    "compiled batch elements": (lambda f: jax.jit(elements, static_argnums=0)(f), 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("callback", [jaxcb.pure_callback, jaxcb.io_callback])
def test_running_call_is_found(name, callback):
    program, element = PROGRAMS[name]
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
    assert call.element == element
    assert call.lowered.site.function == "Stops"
    assert 0 < call.start_ns <= now
    assert call.thread


def test_recording_has_the_calls_still_running_at_its_end():
    from jupyter_jaxcb import Recording

    host, struct = Stops(), jax.ShapeDtypeStruct((), np.float32)
    f = jax.jit(jax.vmap(lambda x: jaxcb.pure_callback(host, struct, x, vmap_method="sequential")))
    with jaxcb.record() as r:
        thread = threading.Thread(target=lambda: f(jnp.array([1.0, 3.0, 2.0])).block_until_ready())
        thread.start()
        assert host.inside.wait(60)
    host.go_on.set()
    thread.join()
    (running,) = r.recording.running
    assert r.recording.lowered[running.lowered].site.function == "Stops"
    assert (running.element, running.number) == (2, 3) and running.elapsed_ns > 0
    assert [frame.function for frame in running.stack] == ["__call__"]
    assert Recording.from_json(r.recording.to_json()).running == (running,)
    (site,) = summarize(r.recording)
    assert (site.status.value, site.calls, site.reason) == ("kept", 0, "")
    line = running.stack[0].line
    assert site.notes == (
        f"call 3, batch element 2, was still running when the recording ended, in __call__, "
        f"test_running.py:{line}",
    )


@pytest.mark.parametrize("executor", ["threads:2", "processes:1"])
def test_running_batch_elements_of_workers_are_found(executor):
    """The host function connects to the test and waits until the test closes the connection."""
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]

    def stops(x):
        if x == 2:
            with socket.create_connection(("127.0.0.1", port), 60) as connection:
                connection.recv(1)
        return x

    spread = jaxcb.io(stops, result=lambda x: x, executor=executor, chunksize=2)
    spread(np.float32(1))
    with server, jaxcb.record():
        thread = threading.Thread(target=lambda: jax.block_until_ready(elements(spread)))
        thread.start()
        with server.accept()[0]:
            found = None
            # Poll: while a chunk is being sent or received, its running element is not known.
            while found is None:
                found = next((run for run in running_calls(active()) if run.element == 2), None)
            call, now = found, active().clock()
        thread.join()
        assert running_calls(active()) == []
    assert (call.element, call.number, call.lowered.site.function) == (2, 4, "stops")
    assert 0 < call.start_ns <= now
    if executor == "threads:2":
        assert call.thread.startswith("jaxcb-threads")
        assert [frame.function for frame in call.stack] == ["stops"]
    else:
        assert call.thread.startswith("pid ") and call.stack == ()
