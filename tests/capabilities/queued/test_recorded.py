"""Recordings count queued calls as others, with the time in the queue, and each exactly once."""

import threading

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb

SIX = jnp.arange(6)


def test_block_waits_for_queued_calls_and_records_each():
    log = jaxcb.debug(lambda i: None, queued=True)
    with jaxcb.record() as r:
        jax.jit(lambda: jax.lax.fori_loop(0, 30, lambda i, y: (log(i), y)[1], 0))()
        jax.vmap(log)(SIX)
    calls = r.recording.calls
    assert (len(calls), r.recording.threads) == (36, ("queued calls",))
    assert calls["element"].tolist() == [*[-1] * 30, *range(6)]
    assert len(set(calls["crossing"])) == 31
    assert (calls["queued_ns"] > 0).tolist() == [*[True] * 31, *[False] * 5]
    crossed = (calls["start_ns"] - calls["queued_ns"])[:31]
    assert (crossed[1:] >= crossed[:-1]).all()
    assert "queued: the program does not wait for its calls" in str(r.recording)
    assert "36 queued calls: ran " in str(r.recording)


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
    assert sorted(use.left for use in first.recording.queue) == [1, 2]
    assert "2 calls still queued or running when the recording ended" in str(first.recording)
    assert [use.left for use in second.recording.queue] == [1]
    assert (len(third.recording), third.recording.queue) == (1, ())
    assert nested.recording.queue == ()


@pytest.mark.parametrize("at", [0, 3, 5])
def test_each_call_is_made_or_dropped_once_when_the_queue_is_dropped(at):
    begun, made = threading.Event(), []

    def log(x):
        made.append(x)
        if x == at:
            begun.set()
            while True:
                pass

    with jaxcb.record() as r:
        jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))(SIX)
        jax.vmap(jaxcb.debug(print, queued=True))(SIX)
        begun.wait(60)
        assert jaxcb.drop_queued() == 6
    assert len(made) == len(r.recording) == at + 1
    assert sorted(use.ended for use in r.recording.queue) == [*[5 - at] * (at < 5), 6]
    assert "6 calls dropped from the queue" in str(r.recording)


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
        may_go.wait(60)

    send = jaxcb.io(upload, result=None, queued=True, executor="threads:1", chunksize=1)
    with jaxcb.record() as r:
        for _ in range(2):
            jax.jit(jax.vmap(send))(SIX)
        begun.wait(60)
        jaxcb.drop_queued()
        may_go.set()
    jax.effects_barrier()
    assert sum(use.ended for use in r.recording.queue) + len(r.recording) == 12
    assert not any(use.left for use in r.recording.queue)


def test_call_that_drops_what_is_queued_goes_on_itself():
    made, dropped = [], []

    def log(x):
        made.append(int(x))
        if x == 1:
            dropped.append(jaxcb.drop_queued())

    jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))(jnp.arange(4))
    jax.effects_barrier()
    assert (made, dropped) == ([0, 1, 2, 3], [0])
