"""A full queue makes the program wait, or drops calls; both are counted."""

import threading

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities import queue
from jupyter_jaxcb.capabilities.queued import _crossing
from jupyter_jaxcb.diagnostics import recording_so_far

KILOBYTE = 1000


def started(target):
    thread = threading.Thread(target=target)
    thread.start()
    return thread


def loop(log, count):
    return jax.jit(lambda: jax.lax.fori_loop(0, count, lambda i, y: (log(i), y)[1], 0))


def test_program_waits_for_room_and_no_call_is_lost(gate, limit):
    limit(10 * KILOBYTE)
    gate.close()
    seen = []
    run = loop(jaxcb.debug(lambda i: seen.append(int(i)), queued=True), 50)
    with jaxcb.record() as r:
        program = started(lambda: run().block_until_ready())
        while queue.waiting_calls().total() < 10:
            pass
        assert program.is_alive()
        assert seen == []
        gate.open()
        program.join()
    assert seen == list(range(50))
    (use,) = r.recording.queue
    assert use.waits > 0
    assert use.waited_ns > 0
    assert (use.full, use.ended, use.left) == (0, 0, 0)
    assert "the queue was full" in str(r.recording)


def test_wait_for_room_is_counted_while_it_lasts_and_if_an_interrupt_ends_it(
    gate, limit, monkeypatch
):
    limit(0)
    gate.close()
    counted = []

    def refuse(*_):
        """What a waiting crossing calls regularly."""
        (use,) = recording_so_far(r).queue
        counted.append((use.waits, use.waited_ns))
        if len(counted) == 3:
            raise ValueError("ended here")

    monkeypatch.setattr(_crossing, "refuse_call", refuse)
    run = loop(jaxcb.debug(lambda i: None, queued=True), 50)
    with jaxcb.record() as r:
        with pytest.raises(jax.errors.JaxRuntimeError, match="ended here"):
            run().block_until_ready()
        gate.open()
    waits, waited_ns = zip(*counted, strict=True)
    assert waits == (1, 1, 1)
    assert waited_ns[0] < waited_ns[1] < waited_ns[2]
    (use,) = r.recording.queue
    assert (use.waits, use.waited_ns) == counted[-1]


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
    assert "40 calls dropped, because the queue was full" in str(r.recording)
    assert len(r.recording) == 10


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(("method", "each"), [("sequential", 3), ("expand_dims", 1)])
def test_masked_calls_are_counted_by_their_masks(gate, limit, full, method, each):
    """Eight crossings of 12 elements, of which three are needed; the queue has room for one."""
    gate.close()
    seen = []
    limit((2 if full else 20) * KILOBYTE)
    log = jaxcb.debug(
        lambda x: seen.extend(x.ravel()), vmap_method=method, queued=True, on_full="drop"
    )
    program = jax.jit(jax.vmap(lambda x: log.where(x > 8, x)))
    with jaxcb.record() as r:
        for _ in range(8):
            program(jnp.arange(12.0))
        jax.block_until_ready(program(jnp.zeros(12)))  # needs none
        kept = queue.waiting_calls().total() // each
        assert (kept < 8) is full
        dropped = jaxcb.drop_queued() if not full else 0
        assert dropped in (0, each * kept)
        gate.open()
    (use,) = r.recording.queue
    assert (use.full, use.ended) == (each * (8 - kept), dropped)
    assert seen == [9.0, 10.0, 11.0] * (kept if full else 0)


def test_unrecorded_drops_are_a_warning_of_the_barrier(gate, limit):
    limit(3 * KILOBYTE)
    gate.close()
    log = jaxcb.debug(lambda i: None, queued=True, on_full="drop")
    jax.vmap(log)(jnp.arange(2))
    loop(log, 8)()
    gate.open()
    with pytest.warns(jaxcb.QueueFullWarning, match=r"dropped 6 queued calls \(<lambda> 6\)"):
        jax.effects_barrier()
    jax.effects_barrier()


def test_one_crossing_larger_than_the_limit_has_room(limit):
    limit(0)
    sizes = []
    f = jax.jit(jaxcb.debug(lambda x: sizes.append(x.nbytes), queued=True))
    for _ in range(3):
        f(jnp.ones(100_000))
    jax.effects_barrier()
    assert sizes == [400_000] * 3


def test_bytes_of_delivered_and_dropped_arrays_are_free_again(gate, limit):
    limit(2_000_000)
    log = jaxcb.debug(lambda x: None, queued=True)
    f = jax.jit(log)
    for _ in range(10):
        f(jnp.ones(100_000))
        jax.effects_barrier()
    gate.close()
    f(jnp.ones(100_000))
    assert jaxcb.drop_queued() == 1
    log(1.0)  # an empty queue always has room
    assert queue.has_room(2_000_000 - 2 * KILOBYTE)
    gate.open()
    jax.effects_barrier()


def test_raised_limit_lets_a_waiting_program_go_on(gate, limit):
    limit(3 * KILOBYTE)
    gate.close()
    run = loop(jaxcb.debug(lambda i: None, queued=True), 20)
    program = started(lambda: run().block_until_ready())
    while queue.waiting_calls().total() < 3:
        pass
    limit(100 * KILOBYTE)
    program.join()
    assert queue.waiting_calls().total() == 20
    gate.open()


def test_call_from_the_queue_never_waits_for_room(gate, limit):
    limit(0)
    seen = []
    inner = jax.jit(jaxcb.debug(lambda x: seen.append(float(x)), queued=True))

    def log(x):
        inner(x)
        inner(x + 1)

    jax.jit(jaxcb.debug(log, queued=True))(1.0)
    jax.effects_barrier()
    jax.effects_barrier()
    assert seen == [1.0, 2.0]
