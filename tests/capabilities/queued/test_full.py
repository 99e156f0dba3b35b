"""A full queue makes the program wait, or drops calls; both are counted."""

import threading

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb

KILOBYTE = 1000


def loop(log, count):
    return jax.jit(lambda: jax.lax.fori_loop(0, count, lambda i, y: (log(i), y)[1], 0))


def test_program_waits_for_room_and_no_call_is_lost(gate, limit):
    limit(10 * KILOBYTE)
    gate.close()
    seen, nearly_full = [], threading.Event()
    log = jaxcb.debug(lambda i: seen.append(int(i)), queued=True, ordered=True)
    count = jaxcb.debug(lambda i: i == 10 and nearly_full.set())
    run = loop(lambda i: [count(i), log(i)], 50)
    with jaxcb.record() as r:
        program = threading.Thread(target=lambda: run().block_until_ready())
        program.start()
        assert nearly_full.wait(60) and program.is_alive() and seen == []
        gate.open()
        program.join(60)
    assert seen == list(range(50))
    (use,) = r.recording.queue
    assert use.waits > 0 and use.waited_ns > 0 and (use.full, use.ended, use.left) == (0, 0, 0)
    assert "the queue was full" in str(r.recording)


def test_calls_without_room_are_dropped_and_counted_with_on_full_drop(gate, limit):
    limit(10 * KILOBYTE)
    gate.close()
    seen = []
    with jaxcb.record() as r:
        loop(jaxcb.debug(lambda i: seen.append(int(i)), queued=True, on_full="drop"), 50)()
        gate.open()
    assert seen == list(range(10))
    (use,) = r.recording.queue
    assert (use.waits, use.full) == (0, 40)
    assert str(r.recording).startswith("⚠ <lambda>: 40 of 50 calls dropped (the queue was full)")
    assert "40 calls dropped, because the queue was full" in str(r.recording)
    assert len(r.recording) == 10


def test_unrecorded_drops_are_a_warning_of_the_barrier(gate, limit):
    limit(3 * KILOBYTE)
    gate.close()
    log = jaxcb.debug(lambda i: None, queued=True, on_full="drop")
    jax.vmap(log)(jnp.arange(2))
    loop(log, 8)()
    gate.open()
    with pytest.warns(jaxcb.QueueFullWarning, match=r"dropped 6 queued calls \(log 6\)"):
        jax.effects_barrier()
    jax.effects_barrier()


@pytest.mark.parametrize("ends", ["made", "dropped"])
def test_each_time_there_is_room_for_two_arrays(ends, gate, limit):
    limit(900 * KILOBYTE)
    sizes = []
    log = jax.jit(jaxcb.debug(lambda x: sizes.append(x.nbytes), queued=True, on_full="drop"))
    for _ in range(3):
        gate.close()
        for _ in range(3):
            log(jnp.ones(100_000))
        assert ends == "made" or jaxcb.drop_queued() == 2
        gate.open()
        with pytest.warns(jaxcb.QueueFullWarning, match=r"dropped 1 queued call \("):
            jax.effects_barrier()
    assert sizes == [400_000] * 6 * (ends == "made")
