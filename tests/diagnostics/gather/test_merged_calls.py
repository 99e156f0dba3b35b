"""In a merged recording, every call keeps all its facts and has its process."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_jaxcb.recording import Process, Recording, merged
from jupyter_jaxcb.report import summarize

from ._recorded import HERE, THERE, recorded


def facts_of(recording):
    """Return the facts of every call, with site, thread name and values instead of numbers."""
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
            sample and (*sample[:2], sample[2] == call.lowered),
        )
        for call in recording
        for sample in [sample_values.get((call.crossing, call.element))]
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
def test_merging_keeps_every_call_of_every_process_once(recordings, data):
    offsets = data.draw(st.lists(st.integers(-(10**12), 10**12), min_size=4, max_size=4))
    processes = [Process(n, "host", 10 + n, offsets[n]) for n in range(len(recordings))]
    whole = merged(recordings, processes)
    assert len(whole) == sum(map(len, recordings))
    for process, part in zip(processes, recordings, strict=True):
        expected = [
            (site, element, start + process.offset_ns, end + process.offset_ns, version, error,
             f"process {process.number} · {thread}", sample)
            for site, element, start, end, version, error, thread, sample in facts_of(part)
        ]  # fmt: skip
        found = zip(whole, facts_of(whole), strict=True)
        found = [facts for call, facts in found if call.process == process.number]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert (np.diff(whole.calls["end_ns"]) >= 0).all()
    assert Recording.from_json(whole.to_json()).to_json() == whole.to_json()


@settings(max_examples=30, deadline=None)
@given(RECORDINGS)
def test_merging_keeps_crossings_apart(recordings):
    whole = merged(recordings)
    groups = {(call.process, call.crossing) for call in whole}
    assert len({crossing for _, crossing in groups}) == len(groups)
    assert len(groups) == sum(len({call.crossing for call in part}) for part in recordings)


@settings(max_examples=30, deadline=None)
@given(RECORDINGS)
def test_totals_are_the_sums_over_the_processes(recordings):
    whole = {row.site: row for row in summarize(merged(recordings))}
    for site in (HERE, THERE):
        rows = [row for part in recordings for row in summarize(part) if row.site == site]
        assert (site in whole) == bool(rows)
        if rows:
            found = whole[site]
            assert found.calls == sum(row.calls for row in rows)
            assert found.crossings == sum(row.crossings for row in rows)
            assert found.host_ns == sum(row.host_ns for row in rows)
