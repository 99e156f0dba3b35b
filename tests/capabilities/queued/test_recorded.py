"""Recordings count queued calls as others, with the time in the queue, and each exactly once."""

import threading
import time

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb

SIX = jnp.arange(6)


def test_block_waits_for_queued_calls_and_records_each():
    log = jaxcb.debug(lambda i: time.sleep(0.001), queued=True)
    with jaxcb.record() as r:
        jax.jit(lambda: jax.lax.fori_loop(0, 30, lambda i, y: (log(i), y)[1], 0))()
        log(1)
    calls = r.recording.calls
    assert len(calls) == 31
    assert r.recording.threads == ("queued calls",)
    crossed = calls["start_ns"] - calls["queued_ns"]
    assert (calls["queued_ns"] > 0).all()
    assert (crossed[1:] >= crossed[:-1]).all()
    assert crossed[29] < calls["end_ns"][10]  # the program did not wait
    assert "queued: the program does not wait for its calls" in str(r.recording)
    assert "31 queued calls: ran " in str(r.recording)


def test_batch_elements_are_rows_of_one_crossing():
    with jaxcb.record() as r:
        jax.jit(jax.vmap(jaxcb.debug(lambda x: None, queued=True)))(jnp.arange(4))
    assert [call.element for call in r.recording] == [0, 1, 2, 3]
    assert len(set(r.recording.calls["crossing"])) == 1
    assert [queued > 0 for queued in r.recording.calls["queued_ns"]] == [True, False, False, False]


def test_call_is_in_the_block_that_its_program_ran_in(gate):
    log = jax.jit(jaxcb.debug(lambda x: None, queued=True))
    with pytest.raises(KeyError), jaxcb.record() as first:
        gate.close()
        log(1.0)
        log(2.0)
        raise KeyError  # an error ends the block without a wait
    with pytest.raises(KeyError), jaxcb.record() as second:
        log(3.0)
        raise KeyError
    with jaxcb.record() as third:
        log(4.0)
        with pytest.raises(KeyError), jaxcb.record() as nested:
            raise KeyError
        gate.open()
    names = [lowered.site.function for lowered in first.recording.lowered]
    left = {names[use.lowered]: use.left for use in first.recording.queue}
    assert left == {"_wait": 1, "<lambda>": 2}
    assert "2 calls still queued or running when the recording ended" in str(first.recording)
    assert [use.left for use in second.recording.queue] == [1]
    assert (len(third.recording), third.recording.queue) == (1, ())
    assert nested.recording.queue == ()


def test_calls_that_are_dropped_while_they_wait_are_counted(gate):
    log = jax.jit(jaxcb.debug(lambda x: None, queued=True))
    gate.close()
    with jaxcb.record() as r:
        for number in range(3):
            log(float(number))
        assert jaxcb.drop_queued() == 3
        gate.open()
    (use,) = (use for use in r.recording.queue if use.ended)
    assert use.ended == 3
    assert "3 calls dropped from the queue" in str(r.recording)


@pytest.mark.parametrize("at", range(6))
def test_batch_that_is_dropped_while_it_runs_has_each_call_once(at):
    begun, made = threading.Event(), []

    def log(x):
        made.append(x)
        if x == at:
            begun.set()
            while True:
                pass

    with jaxcb.record() as r:
        jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))(SIX)
        begun.wait(60)
        assert jaxcb.drop_queued() == 0
    assert len(made) == len(r.recording) == at + 1
    assert [use.ended for use in r.recording.queue] == [5 - at] * (at < 5)


def test_batch_elements_after_a_failed_one_are_counted():
    def log(x):
        if x == 1:
            raise ValueError("one")

    with pytest.raises(jax.errors.JaxRuntimeError), jaxcb.record() as r:
        jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))(SIX)
        jax.effects_barrier()
    assert len(r.recording) == 2
    assert [use.skipped for use in r.recording.queue] == [4]
    assert "4 calls not made, because an earlier batch element failed" in str(r.recording)


def test_what_a_worker_returns_after_its_crossing_was_dropped_is_not_recorded():
    begun, may_go = threading.Event(), threading.Event()

    def upload(x):
        begun.set()
        may_go.wait()

    send = jaxcb.io(upload, result=None, queued=True, executor="threads:1", chunksize=1)
    program = jax.jit(jax.vmap(send))
    with jaxcb.record() as r:
        program(SIX)
        program(SIX)
        begun.wait()
        jaxcb.drop_queued()
        may_go.set()
    jax.effects_barrier()
    (use,) = r.recording.queue
    assert use.ended + len(r.recording) == 12 and use.left == 0


def test_call_that_drops_what_is_queued_goes_on_itself():
    made, dropped = [], []

    def log(x):
        made.append(int(x))
        if x == 1:
            dropped.append(jaxcb.drop_queued())

    jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))(jnp.arange(4))
    jax.effects_barrier()
    assert (made, dropped) == ([0, 1, 2, 3], [0])
