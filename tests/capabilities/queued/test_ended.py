"""Each queued call is in a recording exactly once, wherever `drop_queued` or an error ends it."""

import itertools
import sys

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities import queue
from jupyter_jaxcb.capabilities.queued._queue import Source
from jupyter_jaxcb.stack.errors import EndedError
from jupyter_jaxcb.stack.interrupt import _ending
from jupyter_jaxcb.stack.trace import CROSSINGS


class Drop:
    """Do here what `drop_queued` does to the queue's thread, at the n-th line of a crossing.

    Attributes:
        left: the number of lines left; 0 or less once it was done.
        place: the function and line where it was done.
        raised: whether the host function was there, and got an exception.
    """

    def __init__(self, n):
        self.left, self.place, self.raised = n, "", False

    def __enter__(self):
        sys.settrace(self.trace)

    def __exit__(self, *error):
        sys.settrace(None)

    def trace(self, frame, event, argument):
        if event in ("call", "line") and _ending.is_below(CROSSINGS, frame):
            self.left -= 1
            if self.left == 0:
                self.place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
                _ending._end_elements(frame)
                self.raised = _ending._is_in_host_function(frame)
                if self.raised:
                    raise EndedError
        return self.trace


def log(x):
    made.append(int(x))
    if x == 1:
        raise ValueError("one")


made: list[int] = []
PROGRAMS = {
    "call": (lambda log: log, jnp.int32(0)),
    "failing call": (lambda log: log, jnp.int32(1)),
    "elements": (jax.vmap, jnp.array([0, 2, 3])),
    "failing element": (jax.vmap, jnp.array([0, 2, 1, 3])),
    "masked elements": (lambda log: jax.vmap(lambda x: log.where(x > 1, x)), jnp.arange(4)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_call_that_is_dropped_anywhere_is_recorded_once(name, monkeypatch):
    end_thread()  # that of earlier tests might take the crossing
    monkeypatch.setattr(queue, "_wake", lambda: None)  # the test delivers, line by line
    transform, x = PROGRAMS[name]
    program = jax.jit(transform(jaxcb.debug(log, queued=True)))
    calls = 2 if name == "masked elements" else x.size
    raised = 0
    for drop in map(Drop, itertools.count(1)):
        made.clear()
        recording = recorded(program, x, drop)
        queue.take_failures()
        counts = [use.ended + use.skipped for use in recording.queue]
        assert len(recording) + sum(counts) == calls, drop.place
        begun = drop.place.startswith("log:")  # perhaps not noted yet
        assert len(made) <= len(recording) <= len(made) + begun, drop.place
        raised += drop.raised
        if drop.left > 0:
            break
    assert raised >= 3


def end_thread():
    """End the queue's thread, if it runs; the next crossing or barrier starts another."""
    jax.effects_barrier()
    thread = queue._thread
    if thread is not None:
        with queue._changed:
            queue._thread = None
            queue._items.append((Source(lambda *_: None, None, 0, lambda _: 0), None, 0, "", ()))
            queue._changed.notify_all()
        thread.join()
        queue._idle = True


def recorded(program, x, drop):
    """Return a recording in which `program` makes one crossing, which `drop` hits."""
    with pytest.raises(KeyError), jaxcb.record() as r:
        program(x)
        while not queue._items:
            pass
        with drop:
            queue._deliver_next()
        raise KeyError  # no wait for the queue's thread
    return r.recording
