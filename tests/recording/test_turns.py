"""Host calls pause for an observing thread, but only during its turn."""

import threading

import numpy as np
import pytest

from jupyter_jaxcb.recording import (
    Aval,
    LoweredSite,
    Recorder,
    Site,
    YieldPoints,
    record_call,
    record_elements,
)

F32 = Aval((), "float32")
FACT = LoweredSite(Site("pure", "f", "<cell>", 1, 0, cell=True), None, -1, (F32,),
                   (F32,))  # fmt: skip


class Clock:
    now = 0

    def __call__(self):
        return self.now


@pytest.fixture
def recorder():
    return Recorder(clock=Clock())


def single(recorder):
    return record_call(recorder, FACT, 1, 0, 1)


def elements(recorder):
    return record_elements(recorder, FACT, 1, np.arange(3), [0, 1, 2, 3])


@pytest.mark.parametrize("call", [single, elements])
def test_call_waits_until_the_turn_it_started_ends(recorder, call):
    order = []
    with YieldPoints(recorder, every_ns=100) as turns:
        recorder.clock.now = 101

        def host():
            call(recorder)
            order.append("continued")

        thread = threading.Thread(target=host)
        thread.start()
        assert turns.take(10)
        order.append("observed: " + str(len(recorder.freeze())))
        turns.end()
        thread.join()
    assert order == [f"observed: {1 if call is single else 3}", "continued"]


def test_calls_continue_between_turns(recorder):
    with YieldPoints(recorder, every_ns=100) as turns:
        recorder.clock.now = 50
        for _ in range(100):
            single(recorder)
        assert not turns.take(0)
    assert len(recorder.freeze()) == 100


def test_call_continues_after_a_timeout_if_its_turn_does_not_end(recorder):
    with YieldPoints(recorder, every_ns=100) as turns:
        recorder.clock.now = 101
        single(recorder)  # returns after the timeout
        assert turns.take(0)
        turns.end()
        recorder.clock.now = 202
        crossings = []
        thread = threading.Thread(target=lambda: crossings.append(single(recorder)))
        thread.start()
        assert turns.take(10)
        turns.end()
        thread.join()
    assert crossings == [1]


def test_recorder_is_unwrapped_at_the_end(recorder):
    with YieldPoints(recorder, every_ns=0) as turns:
        pass
    recorder.clock.now = 1
    assert single(recorder) == 0
    assert not turns.take(0)


def test_waiting_thread_can_be_woken(recorder):
    turns = YieldPoints(recorder, every_ns=100)
    woken = []
    thread = threading.Thread(target=lambda: woken.append(turns.take(60)))
    thread.start()
    turns.wake()
    thread.join(10)
    assert woken == [True]
