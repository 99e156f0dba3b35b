"""Recordings count queued calls as others, with the time in the queue."""

import time

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import NoteKind
from jupyter_jaxcb.report import to_mimebundle, to_text
from jupyter_jaxcb.report.summary import summarize


def test_block_waits_for_queued_calls_and_records_each():
    log = jaxcb.debug(lambda i: time.sleep(0.001), queued=True)
    with jaxcb.record() as r:
        jax.jit(lambda: jax.lax.fori_loop(0, 30, lambda i, y: (log(i), y)[1], 0))()
    calls = r.recording.calls
    assert len(calls) == 30
    assert r.recording.threads == ("queued calls",)
    assert (calls["end_ns"] - calls["start_ns"] >= 1_000_000).all()
    crossed = calls["start_ns"] - calls["queued_ns"]
    assert (calls["queued_ns"] > 0).all()
    assert (crossed[1:] >= crossed[:-1]).all()
    assert crossed[-1] < calls["end_ns"][10]  # the program did not wait
    (site,) = summarize(r.recording)
    assert (str(site.status), site.calls, site.expected) == ("kept", 30, 30)
    assert site.notes == ("queued: the program does not wait for its calls",)
    assert "30 queued calls: ran " in str(r.recording)


def test_batch_elements_are_rows_of_one_crossing():
    with jaxcb.record() as r:
        jax.jit(jax.vmap(jaxcb.debug(lambda x: None, queued=True)))(jnp.arange(4))
    assert [call.element for call in r.recording] == [0, 1, 2, 3]
    assert len(set(r.recording.calls["crossing"])) == 1
    assert [queued > 0 for queued in r.recording.calls["queued_ns"]] == [True, False, False, False]


def test_sample_values_are_those_of_the_crossing():
    with jaxcb.record() as r:
        jax.jit(jaxcb.debug(lambda x: None, queued=True))(jnp.arange(3))
    (sample,) = r.recording.sample_values
    assert sample.operands == ("[0, 1, 2]",)


def test_eager_calls_are_recorded_and_waited_for():
    log = jaxcb.debug(lambda x: time.sleep(0.001), queued=True)
    with jaxcb.record() as r:
        for number in range(5):
            log(number)
    assert len(r.recording) == 5


def test_failed_queued_call_is_a_failed_row_and_its_program_is_not_said_to_have_stopped():
    def boom(x):
        raise ValueError("no")

    boom = jaxcb.debug(boom, queued=True)
    later = jaxcb.io(lambda x: x, result="x")

    @jax.jit
    def f(x):
        boom(x)
        return jax.lax.cond(x > 5, later, lambda x: x, x)

    with pytest.raises(jax.errors.JaxRuntimeError), jaxcb.record() as r:
        f(1.0).block_until_ready()
    first, second = summarize(r.recording)
    assert (first.consequence, first.calls) == ("raised", 1)
    assert str(second.status) == "not_reached"
    assert "error" not in second.reason


def test_call_is_reported_to_the_block_that_its_program_ran_in(gate):
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
        gate.open()
    names = [lowered.site.function for lowered in first.recording.lowered]
    left = {names[use.lowered]: use.left for use in first.recording.queue}
    assert left == {"_wait": 1, "<lambda>": 2}
    assert "2 calls still queued or running when the recording ended" in str(first.recording)
    assert [use.left for use in second.recording.queue] == [1]
    assert (len(third.recording), third.recording.queue) == (1, ())


def test_batch_elements_of_a_crossing_that_runs_when_the_recording_ends_are_left_once(gate):
    def log(x):
        if x == 1:
            gate._wait()

    with pytest.raises(KeyError), jaxcb.record() as r:
        jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))(jnp.arange(4))
        gate._entered.wait()
        raise KeyError
    assert (len(r.recording), [use.left for use in r.recording.queue]) == (0, [4])


def test_dropped_calls_are_counted_and_their_site_was_reached(gate):
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
    assert {str(site.status) for site in summarize(r.recording)} == {"kept"}


def test_batch_elements_after_a_failed_one_are_counted():
    def log(x):
        if x == 1:
            raise ValueError("one")

    with pytest.raises(jax.errors.JaxRuntimeError), jaxcb.record() as r:
        jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))(jnp.arange(6))
        jax.effects_barrier()
    assert len(r.recording) == 2
    assert [use.skipped for use in r.recording.queue] == [4]
    assert "4 calls not made, because an earlier batch element failed" in str(r.recording)


def test_batch_elements_of_a_crossing_that_was_dropped_while_it_ran_are_counted():
    begun = []

    def log(x):
        begun.append(x)
        while x == 2:
            pass

    with jaxcb.record() as r:
        jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))(jnp.arange(6))
        while len(begun) < 3:
            pass
        assert jaxcb.drop_queued() == 0
    assert len(begun) == len(r.recording) == 3
    assert [use.ended for use in r.recording.queue] == [3]


def test_call_that_drops_what_is_queued_goes_on_itself():
    made, dropped = [], []

    def log(x):
        made.append(int(x))
        if x == 1:
            dropped.append(jaxcb.drop_queued())

    f = jax.jit(jax.vmap(jaxcb.debug(log, queued=True)))
    f(jnp.arange(4))
    jax.effects_barrier()
    assert made == [0, 1, 2, 3]
    assert dropped == [0]


def test_nested_block_has_only_what_was_queued_in_it(gate):
    log = jax.jit(jaxcb.debug(lambda x: None, queued=True))
    gate.close()
    with jaxcb.record() as outer:
        log(1.0)
        with pytest.raises(KeyError), jaxcb.record() as inner:
            raise KeyError
        gate.open()
    assert inner.recording.queue == ()
    assert len(outer.recording) == 1


def test_text_without_times_is_the_same_in_every_run():
    def text():
        log = jaxcb.debug(lambda i: None, queued=True)
        with jaxcb.record() as r:
            jax.jit(lambda: jax.lax.fori_loop(0, 9, lambda i, y: (log(i), y)[1], 0))()
        return to_text(r.recording, times=False)

    assert text() == text()


def test_times_of_the_queue_are_metadata_that_nbval_ignores():
    with jaxcb.record() as r:
        jax.jit(jaxcb.debug(lambda x: None, queued=True))(1.0)
    data, metadata = to_mimebundle(r.recording)
    ((line,),) = [measured["by_worker"] for measured in metadata.values()]
    assert line.startswith("1 queued call: ran ")
    assert "1 queued call: ran" not in str(data)


def test_explanation_says_that_the_calls_are_queued():
    log = jaxcb.debug(lambda x: None, queued=True)
    recording = jaxcb.explain(lambda x: log(x))(1.0)
    (outcome,) = recording.outcomes
    assert [note.kind for note in outcome.notes] == [NoteKind.QUEUED]
