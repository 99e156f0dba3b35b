"""A recording holds what its recorder collected, from any thread, up to its capacity."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    WHOLE_BATCH,
    Aval,
    Frame,
    JaxUse,
    LoweredSite,
    Note,
    NoteKind,
    Outcome,
    Program,
    Reason,
    Recorder,
    Recording,
    Site,
    Status,
    VmapLevel,
    activate,
    active,
    record_call,
    record_elements,
)
from tests._threads import in_threads

SITE = Site("pure", "f", "model.py", 3, 4, cell=False, source="y = f(x)")
SCALAR = Aval((), "float32")


def looped(size, batched):
    return VmapLevel(size, VMAP_METHODS["sequential"], batched)


def lowered(site=SITE, levels=()):
    shape = tuple(level.size for level in reversed(levels))
    aval = Aval(shape, "float32")
    return LoweredSite(site, Program("jit_f", "cpu"), 0, (aval,), (aval,), levels)


def test_times_come_from_the_clock_it_was_given():
    clock = itertools.count(100, 25).__next__
    recorder = Recorder(clock=clock)
    record_call(recorder, lowered(), 1, recorder.clock(), recorder.clock())
    (call,) = recorder.freeze()
    assert (call.start_ns, call.end_ns) == (100, 125)


def test_elements_of_a_crossing_are_consecutive_calls():
    recorder = Recorder()
    fact = lowered(levels=(looped(3, (True,)),))
    record_elements(recorder, fact, 1, np.arange(3), [10, 20, 25, 40])
    record_elements(recorder, fact, 1, np.arange(3), [50, 60, 70, 80])
    calls = list(recorder.freeze())
    assert [call.crossing for call in calls] == [0, 0, 0, 1, 1, 1]
    assert [call.element for call in calls] == [0, 1, 2, 0, 1, 2]
    assert [(c.start_ns, c.end_ns) for c in calls[:3]] == [(10, 20), (20, 25), (25, 40)]


def test_elements_without_an_executor_were_not_queued():
    """`queued_ns` of their rows is 0, even where the memory held other bytes before."""
    recorder = Recorder()
    fact = lowered(levels=(looped(3, (True,)),))
    dirty = [np.full(3 * Recording().calls.itemsize, 255, np.uint8) for _ in range(10)]
    del dirty
    record_elements(recorder, fact, 1, np.arange(3), [10, 20, 25, 40])
    assert [call.queued_ns for call in recorder.freeze()] == [0, 0, 0]


def test_failed_element_carries_the_error_and_the_others_do_not():
    recorder = Recorder()
    fact = lowered(levels=(looped(4, (True,)),))
    record_elements(recorder, fact, 1, np.arange(4), [0, 1, 2], 1, "ValueError: no luck")
    assert [call.error for call in recorder.freeze()] == [None, "ValueError: no luck"]


def test_failed_crossing_has_the_calls_of_the_elements_that_ran():
    recorder = Recorder()
    levels = (looped(2, (True,)), looped(3, (True,)))
    order = np.arange(6).reshape(3, 2).T.reshape(-1)  # the outermost axis runs fastest
    record_elements(
        recorder, lowered(levels=levels), 1, order, [0, 1, 2, 3], 2, "ValueError: no luck"
    )
    assert [call.element for call in recorder.freeze()] == [0, 2, 4]


def test_full_log_counts_the_calls_it_cannot_keep():
    recorder = Recorder(capacity=5)
    fact = lowered(levels=(looped(4, (True,)),))
    for _ in range(2):
        record_elements(recorder, fact, 1, np.arange(4), [0, 1, 2, 3, 4])
    record_call(recorder, lowered(), 1, 0, 1)
    recording = recorder.freeze()
    assert (len(recording), recording.overflow) == (5, 4)


def test_last_call_is_that_which_ended_last_with_the_number_of_its_sites_calls():
    recorder = Recorder(capacity=3)
    others = lowered(dataclasses.replace(SITE, line=9))
    assert (recorder.last_call(), recorder.count()) == (None, 0)
    for site, end in ((lowered(), 2), (others, 9), (lowered(), 4)):
        record_call(recorder, site, 1, 1, end)
    assert recorder.last_call() == (others, 1)
    record_call(recorder, lowered(), 1, 1, 12)  # there is no room for it
    assert (recorder.last_call(), recorder.count()) == (None, 4)


def test_no_call_from_many_threads_is_lost_or_torn():
    recorder = Recorder()
    facts = [lowered(Site("pure", f"f{i}", "m.py", i, 0, cell=False)) for i in range(4)]

    def work(number):
        for step in range(5_000):
            record_call(recorder, facts[number], number + 1, step, step + number)

    in_threads(work, range(4))
    recording = recorder.freeze()
    assert len(recording) == 20_000
    assert len(set(recording.calls["crossing"].tolist())) == 20_000
    for call in recording:
        site = recording.lowered[call.lowered].site
        assert site.function == f"f{call.version - 1}"
        assert call.end_ns - call.start_ns == call.version - 1


def test_window_holds_the_calls_after_its_mark_and_their_facts():
    recorder = Recorder()
    before, after = lowered(), lowered(Site("io", "g", "m.py", 9, 0, cell=False))
    recorder.lowered(before)
    record_call(recorder, before, 1, 0, 1)
    mark = recorder.mark()
    recorder.lowered(after)
    record_call(recorder, before, 1, 2, 3)
    recording = recorder.freeze(mark)
    assert len(recording) == 1
    assert recording.lowered[recording.calls["lowered"][0]] is before
    assert set(recording.lowered) == {before, after}
    assert len(recorder.freeze()) == 2


def test_wall_time_is_that_from_the_mark_to_the_end_and_unknown_without_one():
    times = iter([100, 5_400])
    recorder = Recorder(clock=lambda: next(times))
    recording = recorder.freeze(recorder.mark())
    assert recording.wall_ns == Recording.from_json(recording.to_json()).wall_ns == 5_300
    assert recorder.freeze().wall_ns == 0


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


def test_activate_replaces_the_recorder_and_returns_the_previous_one():
    first, second = Recorder(), Recorder()
    assert activate(first) is None
    assert activate(second) is first
    assert active() is second
    assert activate(None) is second


names = st.text(max_size=8)
sites = st.builds(
    Site,
    flavor=st.sampled_from(["pure", "io", "debug"]),
    function=names,
    file=names,
    line=st.integers(0, 10**6),
    column=st.integers(0, 200),
    cell=st.booleans(),
    source=names,
    callers=st.lists(
        st.builds(Frame, names, names, st.integers(0, 99), st.integers(0, 99), st.booleans()),
        max_size=2,
    ).map(tuple),
)
avals = st.builds(
    Aval, st.lists(st.integers(0, 9), max_size=3).map(tuple), st.sampled_from(["float32", "int4"])
)


uses = st.builds(JaxUse, names, names, st.integers(0, 99), cell=st.booleans(), jitted=st.booleans())
notes = st.builds(
    Note,
    st.sampled_from(NoteKind),
    st.lists(st.integers(0, 9), max_size=2).map(tuple),
    st.none() | uses,
)


@given(data=st.data(), where=st.lists(sites, min_size=1, max_size=4))
def test_json_keeps_everything(data, where):
    recorder = Recorder()
    for site in where:
        operands = tuple(data.draw(st.lists(avals, max_size=2)))
        method = data.draw(st.sampled_from([*VMAP_METHODS.values(), WHOLE_BATCH]))
        fact = LoweredSite(site, data.draw(st.sampled_from([None, Program("p", "cpu")])), 0,
                           operands, (),
                           (VmapLevel(2, method, (True,) * len(operands)),))  # fmt: skip
        recorder.bound(site)
        recorder.lowered(fact)
        error = data.draw(st.none() | names)
        record_call(recorder, fact, 1, data.draw(st.integers(0, 2**60)), 2**60, error)
        program = Program("p", "cpu", data.draw(st.integers(0, 3)))
        recorder.add_outcome(
            Outcome(site, program, data.draw(st.sampled_from(Status)), 1, 2,
                    data.draw(st.none() | st.integers(0, 9)), 3, 4, ("scan of 2",), ("vmap",),
                    data.draw(st.none() | st.sampled_from(Reason)), 5, True, data.draw(names),
                    data.draw(st.lists(notes, max_size=3).map(tuple)))
        )  # fmt: skip
        recorder.start_counting_runs(program)
        recorder.ran(program)
    recording = recorder.freeze(cells=["c"], environment={"jax": "0.0"})
    back = Recording.from_json(recording.to_json())
    assert list(back) == list(recording)
    assert list(back.bound.items()) == list(recording.bound.items())
    assert [s.callers for s in back.bound] == [s.callers for s in recording.bound]
    assert (back.outcomes, back.runs) == (recording.outcomes, recording.runs)
    assert len(back.outcomes) == sum(back.runs.values()) == len(where)
    fields = ("site", "program", "index", "operands", "results", "levels", "version")
    for a, b in zip(back.lowered, recording.lowered, strict=True):
        assert all(getattr(a, field) == getattr(b, field) for field in fields)
    assert (back.cells, back.environment, back.overflow) == (("c",), {"jax": "0.0"}, 0)


def test_host_avals_have_no_looped_axes():
    levels = (looped(3, (True, False)), looped(2, (True, True)))
    fact = LoweredSite(
        SITE,
        None,
        -1,
        (Aval((2, 3, 5), "float32"), Aval((2,), "int32")),
        (Aval((2, 3, 5), "float32"),),
        levels,
    )
    assert fact.elements == 6
    operands, results = fact.host_avals()
    assert operands == (Aval((5,), "float32"), Aval((), "int32"))
    assert results == (Aval((5,), "float32"),)


def test_repeated_binds_of_a_site_are_counted():
    recorder = Recorder()
    recorder.bound(SITE)
    mark = recorder.mark()
    for _ in range(3):
        recorder.bound(Site("pure", "f", "model.py", 3, 4, cell=False))
    assert recorder.freeze().bound == {SITE: 4}
    assert recorder.freeze(mark).bound == {SITE: 3}
    assert recorder.freeze(recorder.mark()).bound == {}


def test_equal_errors_are_kept_once():
    recorder = Recorder()
    for _ in range(3):
        record_call(recorder, lowered(), 1, 0, 1, "ValueError: no luck")
    recording = recorder.freeze()
    assert recording.errors == ("ValueError: no luck",)
    assert [call.error for call in recording] == ["ValueError: no luck"] * 3
