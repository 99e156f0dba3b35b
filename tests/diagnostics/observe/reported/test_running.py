"""Host calls of JAX's own callbacks that are still running when the recording ends."""

import threading
import warnings

import jax
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics import all_running_calls
from jupyter_jaxcb.report import summarize
from tests.diagnostics.observe._own import STRUCT, line_of, observed, one


class Held:
    """A call that begins, and ends when it is let go."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.go.wait(30)


WAYS = {
    "jax pure": lambda host: lambda x: jax.pure_callback(host, STRUCT, x),
    "jax io": lambda host: lambda x: io_callback(host, STRUCT, x),
    "jax debug": lambda host: lambda x: jax.debug.callback(host, x),
    "jax buffer": lambda host: lambda x: buffer_callback(host, STRUCT)(x),
}


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("flavor", WAYS)
def test_call_that_still_runs_on_another_thread_is_named_and_not_not_run(flavor, around):
    held, over = Held(), threading.Event()

    def host(*args):
        if not over.is_set():
            held()  # still in here
        if flavor == "jax buffer":
            np.asarray(args[1])[...] = 1
            return None
        return np.float32(1)

    f = around(WAYS[flavor](host))

    def calls():
        jax.block_until_ready(f(one()))
        jax.effects_barrier()

    def thread_of_calls():
        return threading.Thread(target=calls)

    first, thread = thread_of_calls(), thread_of_calls()
    with jaxcb.observe_jax() as r:
        over.set()
        first.start()
        first.join()
        over.clear()
        thread.start()
        assert held.begun.wait(30)
    held.go.set()
    thread.join()
    (running,) = r.recording.running
    assert (running.number, running.element, running.thread) == (2, -1, thread.name)
    places = [(frame.function, frame.line) for frame in running.stack]
    assert ("host", line_of(host, "still in here")) in places
    (summary,) = summarize(r.recording)
    assert (summary.status, summary.calls) == ("kept", 1)
    assert "call 2 was still running when the recording ended" in summary.notes[0]
    assert all_running_calls() == []


def test_only_call_that_still_runs_is_not_not_run():
    held = Held()

    def host(x):
        held()
        return x

    f = jax.jit(lambda x: io_callback(host, STRUCT, x))
    thread = threading.Thread(target=lambda: jax.block_until_ready(f(one())))
    with jaxcb.observe_jax() as r:
        thread.start()
        assert held.begun.wait(30)
    held.go.set()
    thread.join()
    (summary,) = summarize(r.recording)
    assert (summary.status, summary.calls) == ("kept", 0)


def test_call_that_failed_is_not_running_any_more():
    def fail(x):
        raise ValueError("no luck")

    with jaxcb.observe_jax() as r:
        with pytest.raises(ValueError, match="no luck"):
            jax.debug.callback(fail, one())
        assert all_running_calls() == []
    assert r.recording.running == ()


def test_jax_inside_of_a_host_function_of_jaxs_own_is_seen_and_not_warned_of():
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
