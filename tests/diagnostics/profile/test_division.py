"""Each instant belongs to one interval, each crossing to one event: compared with references."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_jaxcb.diagnostics.profile import _division
from jupyter_jaxcb.diagnostics.profile._division import NOBODY, Division, Intervals, divide, spans
from jupyter_jaxcb.diagnostics.profile._lanes import _containing

TIMES = st.integers(0, 30)
OWNERS = 6
INTERVALS = st.lists(st.tuples(TIMES, TIMES, st.integers(0, OWNERS - 1)), max_size=8)
LAYERS = st.lists(INTERVALS, max_size=4)
BLOCKS = st.tuples(TIMES, TIMES).map(sorted)
THRESHOLDS = pytest.mark.parametrize("long", [_division._LONG, 2, 0])


def layer(rows):
    return Intervals(*np.array(rows, np.int64).reshape(-1, 3).T)


def owners_at(time, start, end, layers):
    """Return who may own the unit from `time`: the shortest intervals of the last layer there.

    Intervals are compared as far as they are inside of the block. Of equally long ones, the
    division may choose any.
    """
    for rows in reversed(layers):
        inside = [(max(a, start), min(b, end), owner) for a, b, owner in rows]
        here = [(b - a, owner) for a, b, owner in inside if a <= time < b]
        if here:
            return {owner for length, owner in here if length == min(here)[0]}
    return {NOBODY}


def units(division):
    """Return the owner of each unit of time."""
    return np.repeat(division.owners, division.lengths).tolist()


@THRESHOLDS
@settings(max_examples=300)
@given(block=BLOCKS, layers=LAYERS, edges=st.lists(TIMES, max_size=5))
def test_each_unit_belongs_to_the_shortest_interval_of_the_last_layer(long, block, layers, edges):
    start, end = block
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_division, "_LONG", long)
        division = divide(start, end, [layer(rows) for rows in layers], edges)
    allowed = [owners_at(time, start, end, layers) for time in range(start, end)]
    for found, expected in zip(units(division), allowed, strict=True):
        assert found in expected


def test_interval_of_many_segments_takes_precedence_over_a_longer_one_of_few(monkeypatch):
    monkeypatch.setattr(_division, "_LONG", 2)
    division = divide(0, 30, [layer([(0, 6, 1), (5, 30, 2)])], edges=[1, 2, 3])
    assert units(division) == [1] * 6 + [2] * 24


@given(block=BLOCKS, layers=LAYERS, edges=st.lists(TIMES, max_size=5))
def test_totals_and_free_time_add_up_to_the_block(block, layers, edges):
    start, end = block
    division = divide(start, end, [layer(rows) for rows in layers], edges)
    owned = units(division)
    totals = division.totals(OWNERS)
    assert totals.tolist() == [owned.count(owner) for owner in range(OWNERS)]
    assert totals.sum() + owned.count(NOBODY) == end - start


@given(block=BLOCKS, layers=LAYERS, edges=st.lists(TIMES, max_size=5))
def test_segments_end_at_every_edge_inside_of_the_block(block, layers, edges):
    start, end = block
    division = divide(start, end, [layer(rows) for rows in layers], edges)
    assert {start, end, *(one for one in edges if start < one < end)} <= set(division.edges)
    assert (np.diff(division.edges) > 0).all()
    assert (division.edges[0], division.edges[-1]) == (start, end)


def test_totals_have_owners_without_time():
    assert divide(0, 9, [layer([(2, 5, 1)])]).totals(4).tolist() == [0, 3, 0, 0]


def test_intervals_are_cut_to_the_block():
    cut = layer([(0, 3, 0), (2, 9, 1), (4, 5, 2), (8, 9, 3), (6, 5, 4)]).within(3, 8)
    assert [column.tolist() for column in cut] == [[3, 4], [8, 5], [1, 2]]


DIVISIONS = st.lists(
    st.tuples(st.integers(1, 9), st.integers(NOBODY, 2)), min_size=1, max_size=20
).map(
    lambda rows: Division(
        7 + np.cumsum([0, *(length for length, _ in rows)]), np.array([owner for _, owner in rows])
    )
)


def triples(division, buckets):
    flat = spans(division, buckets)
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


@given(division=DIVISIONS, buckets=st.integers(1, 40))
def test_spans_are_sorted_in_the_block_and_few(division, buckets):
    found = triples(division, buckets)
    assert len(found) <= buckets
    end = 0
    for start, duration, owner in found:
        assert start >= end and duration > 0 and owner != NOBODY
        end = start + duration
    assert end <= division.lengths.sum()
    for (start, duration, owner), (later, _, other) in itertools.pairwise(found):
        assert start + duration < later or owner != other


@given(division=DIVISIONS, buckets=st.integers(1, 40))
def test_each_piece_goes_to_its_largest_owner(division, buckets):
    owned = units(division)
    cuts = sorted({len(owned) * n // buckets for n in range(buckets + 1)})
    drawn = [NOBODY] * len(owned)
    for start, duration, owner in triples(division, buckets):
        drawn[start : start + duration] = [owner] * duration
    for begin, stop in itertools.pairwise(cuts):
        (chosen,) = set(drawn[begin:stop])
        piece = owned[begin:stop]
        assert piece.count(chosen) == max(map(piece.count, piece))


@pytest.mark.parametrize("layers", [[], [[(0, 9, 0)]]])
def test_an_empty_block_has_no_segments_and_no_spans(layers):
    division = divide(5, 5, [layer(rows) for rows in layers], [5])
    assert division.totals(2).tolist() == [0, 0]
    assert spans(division, 10) == ()


SPANS = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)
CROSSINGS = st.lists(SPANS, max_size=8)
EVENTS = st.lists(st.tuples(SPANS, st.integers(0, 3)), max_size=8)


@given(crossings=CROSSINGS, events=EVENTS)
def test_crossing_takes_the_event_around_it_that_ends_first_and_no_crossing_has_taken(
    crossings, events
):
    events = sorted((start, end, lane) for (start, end), lane in events)
    columns = np.array(crossings, np.int64).reshape(-1, 2)
    found = _containing(columns[:, 0], columns[:, 1], events)
    left = list(events)
    for number in np.argsort(columns[:, 0], kind="stable").tolist():
        start, end = crossings[number]
        around = [event for event in left if event[0] <= start and end <= event[1]]
        # Of events that end at once, any may be taken.
        ends_first = [one for one in around if one[1] == min(one[1] for one in around)]
        assert found[number] in [one[2] for one in ends_first] or (found[number], around) == (
            -1,
            [],
        )
        if around:
            left.remove(next(one for one in ends_first if one[2] == found[number]))
