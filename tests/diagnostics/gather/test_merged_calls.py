"""In a merged recording, every call keeps its process and all its facts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_jaxcb.recording import Process, Recording, merged
from jupyter_jaxcb.report import summarize

from ._recorded import HERE, THERE, recorded


def facts_of(recording):
    """Each call with everything that its numbers stand for, but threads' and programs' numbers."""
    sample_values = {
        (p.crossing, p.element): (p.operands, p.results, p.lowered) for p in recording.sample_values
    }
    return [
        (
            recording.lowered[call.lowered].site,
            call.element,
            call.start_ns,
            call.end_ns,
            call.version,
            call.error,
            recording.threads[call.thread],
            given and (*given[:2], given[2] == call.lowered),
        )
        for call in recording
        for given in [sample_values.get((call.crossing, call.element))]
    ]


TIMES = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 1000)).map(lambda pair: tuple(sorted(pair))),
    max_size=5,
)
RECORDINGS = st.lists(
    st.builds(
        recorded,
        TIMES,
        site=st.sampled_from([HERE, THERE]),
        elements=st.integers(0, 3),
        error=st.sampled_from([None, "ValueError: a", "ValueError: b"]),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(RECORDINGS, st.data())
def test_every_call_of_every_process_is_there_once_with_all_it_had(recordings, data):
    offsets = data.draw(st.lists(st.integers(-(10**12), 10**12), min_size=4, max_size=4))
    processes = [Process(n, "host", 10 + n, offsets[n]) for n in range(len(recordings))]
    whole = merged(recordings, processes)
    assert len(whole) == sum(map(len, recordings))
    for process, own in zip(processes, recordings, strict=True):
        expected = [
            (site, element, start + process.offset_ns, end + process.offset_ns, version, error,
             f"process {process.number} · {thread}", sample)
            for site, element, start, end, version, error, thread, sample in facts_of(own)
        ]  # fmt: skip
        found = zip(whole, facts_of(whole), strict=True)
        found = [facts for call, facts in found if call.process == process.number]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert (np.diff(whole.calls["end_ns"]) >= 0).all()
    assert Recording.from_json(whole.to_json()).to_json() == whole.to_json()


@settings(max_examples=30, deadline=None)
@given(RECORDINGS)
def test_calls_share_a_crossing_only_if_they_did_before(recordings):
    whole = merged(recordings)
    groups = {(call.process, call.crossing) for call in whole}
    assert len({crossing for _, crossing in groups}) == len(groups)
    assert len(groups) == sum(len({call.crossing for call in own}) for own in recordings)


@settings(max_examples=30, deadline=None)
@given(RECORDINGS)
def test_sums_over_processes_are_sums_of_their_reports(recordings):
    whole = {one.site: one for one in summarize(merged(recordings))}
    for site in (HERE, THERE):
        own = [one for each in recordings for one in summarize(each) if one.site == site]
        assert (site in whole) == bool(own)
        if own:
            found = whole[site]
            assert found.calls == sum(one.calls for one in own)
            assert found.crossings == sum(one.crossings for one in own)
            assert found.host_ns == sum(one.host_ns for one in own)
