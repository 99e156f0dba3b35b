"""The lane of each host call: compared with a reference that looks at every event."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jupyter_jaxcb.diagnostics.profile._lanes import _containing

TIMES = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)
CROSSINGS = st.lists(TIMES, max_size=8)
EVENTS = st.lists(st.tuples(TIMES, st.integers(0, 3)), max_size=8)


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
