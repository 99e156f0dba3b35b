"""Host calls of JAX's callbacks that are still running when the recording ends are reported."""

import threading
import warnings

import jax
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import STRUCT, line_of, observed, one
from tests.interface import all_running_calls, summarize


class Held:
    """A call that sets `started` and then waits until `go` is set."""

    def __init__(self):
        self.started, self.go = threading.Event(), threading.Event()

    def __call__(self):
        self.started.set()
        assert self.go.wait(30)


BINDS = {
    "jax pure": lambda host: lambda x: jax.pure_callback(host, STRUCT, x),
    "jax io": lambda host: lambda x: io_callback(host, STRUCT, x),
    "jax debug": lambda host: lambda x: jax.debug.callback(host, x),
    "jax buffer": lambda host: lambda x: buffer_callback(host, STRUCT)(x),
}


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("flavor", BINDS)
def test_call_still_running_on_another_thread_is_reported_as_running(flavor, around):
    held, let_through = Held(), threading.Event()

    def host(*args):
        if not let_through.is_set():
            held()  # blocks here
        if flavor == "jax buffer":
            np.asarray(args[1])[...] = 1
            return None
        return np.float32(1)

    f = around(BINDS[flavor](host))

    def calls():
        jax.block_until_ready(f(one()))
        jax.effects_barrier()

    def thread_of_calls():
        return threading.Thread(target=calls)

    first, thread = thread_of_calls(), thread_of_calls()
    with jaxcb.observe_jax() as r:
        let_through.set()
        first.start()
        first.join()
        let_through.clear()
        thread.start()
        assert held.started.wait(30)
    held.go.set()
    thread.join()
    (running,) = r.recording.running
    assert (running.number, running.element, running.thread) == (2, -1, thread.name)
    frames = [(frame.function, frame.line) for frame in running.stack]
    assert ("host", line_of(host, "blocks here")) in frames
    (summary,) = summarize(r.recording)
    assert (summary.status, summary.calls) == ("kept", 1)
    assert "call 2 was still running when the recording ended" in summary.notes[0]
    assert all_running_calls() == []


def test_site_whose_only_call_is_still_running_is_kept():
    held = Held()

    def host(x):
        held()
        return x

    f = jax.jit(lambda x: io_callback(host, STRUCT, x))
    thread = threading.Thread(target=lambda: jax.block_until_ready(f(one())))
    with jaxcb.observe_jax() as r:
        thread.start()
        assert held.started.wait(30)
    held.go.set()
    thread.join()
    (summary,) = summarize(r.recording)
    assert (summary.status, summary.calls) == ("kept", 0)


def test_failed_call_is_not_reported_as_running():
    def fail(x):
        raise ValueError("no luck")

    with jaxcb.observe_jax() as r:
        with pytest.raises(ValueError, match="no luck"):
            jax.debug.callback(fail, one())
        assert all_running_calls() == []
    assert r.recording.running == ()


def test_jax_inside_a_host_function_of_jax_is_noted_without_a_warning():
    seen = []

    def host(x):
        seen.extend(call.in_jax for call in all_running_calls())
        jax.block_until_ready(jax.jit(lambda x: seen.extend(_in_jax()) or x + 1)(1))

    def _in_jax():
        return [call.in_jax for call in all_running_calls()]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        observed(lambda: jax.debug.callback(host, one()))
    assert seen == [False, True]
