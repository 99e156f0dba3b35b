"""A recording holds what its recorder collected, from any thread; calls pause for an observer."""

import itertools
import threading

import numpy as np
import pytest

from jupyter_jaxcb.recording import YieldPoints
from tests.interface import LoweredSite, Program, Recorder, Site, record_call, record_elements
from tests.report._several import f32, level

SITE = Site("pure", "f", "model.py", 3, 4, cell=False, source="y = f(x)")


def lowered(*sizes):
    """Return a fact of a call under vmaps of these sizes, innermost first."""
    levels = tuple(level(size, "sequential", (True,)) for size in sizes)
    avals = (f32(*reversed(sizes)),)
    return LoweredSite(SITE, Program("jit_f", "cpu"), 0, avals, avals, levels)


def test_times_come_from_the_clock_it_was_given():
    recorder = Recorder(clock=itertools.count(100, 25).__next__)
    record_call(recorder, lowered(), 1, recorder.clock(), recorder.clock())
    (call,) = recorder.freeze()
    assert (call.start_ns, call.end_ns) == (100, 125)


def test_elements_of_a_crossing_are_consecutive_calls_and_end_with_the_one_that_failed():
    recorder = Recorder()
    record_elements(recorder, lowered(3), 1, np.arange(3), [10, 20, 25, 40])
    order = np.arange(6).reshape(3, 2).T.reshape(-1)  # the outermost axis runs fastest
    record_elements(recorder, lowered(2, 3), 1, order, [0, 1, 2, 3], 2, "ValueError: no luck")
    assert [(c.crossing, c.element, c.start_ns, c.end_ns) for c in recorder.freeze()] == [
        *[(0, 0, 10, 20), (0, 1, 20, 25), (0, 2, 25, 40)],
        *[(1, 0, 0, 1), (1, 2, 1, 2), (1, 4, 2, 3)],
    ]


def test_recording_cannot_be_changed():
    recorder = Recorder()
    record_call(recorder, lowered(), 1, 0, 1)
    recording = recorder.freeze()
    record_call(recorder, lowered(), 1, 2, 3)
    assert len(recording) == 1
    with pytest.raises(ValueError, match="read-only"):
        recording.calls["element"] = 7
    with pytest.raises(AttributeError):
        recording.overflow = 1


def test_equal_errors_are_kept_once():
    recorder = Recorder()
    for _ in range(3):
        record_call(recorder, lowered(), 1, 0, 1, "ValueError: no luck")
    recording = recorder.freeze()
    assert recording.errors == ("ValueError: no luck",)
    assert [call.error for call in recording] == ["ValueError: no luck"] * 3


def test_repeated_binds_of_a_site_are_counted():
    recorder = Recorder()
    recorder.bound(SITE)
    mark = recorder.mark()
    for _ in range(3):
        recorder.bound(Site("pure", "f", "model.py", 3, 4, cell=False))
    found = [recorder.freeze(*since).bound for since in ((), (mark,), (recorder.mark(),))]
    assert found == [{SITE: 4}, {SITE: 3}, {}]


def single(recorder):
    return record_call(recorder, lowered(), 1, 0, 1)


def elements(recorder):
    return record_elements(recorder, lowered(), 1, np.arange(3), [0, 1, 2, 3])


@pytest.mark.parametrize(("call", "rows"), [(single, 1), (elements, 3)])
def test_call_waits_until_the_turn_it_started_ends(call, rows):
    now, order = [0], []
    recorder = Recorder(clock=lambda: now[-1])
    with YieldPoints(recorder, every_ns=100) as turns:
        now.append(101)
        thread = threading.Thread(target=lambda: (call(recorder), order.append("continued")))
        thread.start()
        assert turns.take(10)
        order.append(f"observed: {len(recorder.freeze())}")
        turns.end()
        thread.join()
    assert order == [f"observed: {rows}", "continued"]


def test_calls_continue_between_turns_and_after_the_last_one():
    now = [0]
    recorder = Recorder(clock=lambda: now[-1])
    with YieldPoints(recorder, every_ns=100) as turns:
        now.append(50)
        for _ in range(100):
            single(recorder)
        assert not turns.take(0)
    now.append(101)
    assert single(recorder) == 100
    assert not turns.take(0)
    assert len(recorder.freeze()) == 101
