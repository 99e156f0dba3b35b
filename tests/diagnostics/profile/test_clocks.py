"""The times of the profiler are converted to the clock of the recorder."""

import numpy as np

from jupyter_jaxcb.diagnostics.profile._events import Events, LaneEvents
from jupyter_jaxcb.diagnostics.profile._session import _to_recorders_clock

SECOND = 1_000_000_000


def converted(marks, *times):
    """Return times of events after the conversion."""
    columns = [np.array(times, np.float64) for _ in range(2)]
    lane = LaneEvents("python", False, *columns, np.zeros(len(times), np.int64), marks)
    _to_recorders_clock(Events([lane], [], 0))
    assert lane.starts.tolist() == lane.ends.tolist()
    return lane.starts.tolist()


def test_clocks_of_different_rates_agree_at_all_times():
    """The recorder's clock gains 2 µs in each second, of which 10 are between the marks."""
    marks = [(500, 0), (10 * SECOND + 20_500, 10 * SECOND)]
    found = converted(marks, 0, 5 * SECOND, 10 * SECOND)
    assert found == [500, 5 * SECOND + 10_500, 10 * SECOND + 20_500]
