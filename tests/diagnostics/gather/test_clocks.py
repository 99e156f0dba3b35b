"""The clock difference of two processes, derived from their messages."""

import itertools
import struct
from types import SimpleNamespace

import pytest

from jupyter_jaxcb.diagnostics.gather import _gather


class Reported:
    """A meeting in which the other process reported these times."""

    def __init__(self, times):
        self._times = iter(times)

    def post(self, name, data):
        pass

    def read(self, name, process):
        return struct.pack("<q", next(self._times))


@pytest.mark.parametrize(("index", "found"), [(0, {"most": [0, -1_000]}), (1, {"least": 1_000})])
def test_the_message_that_took_least_bounds_the_difference(index, found, monkeypatch):
    """The other clock is ahead by 1,000 ns; messages take 0, 2, 4 ... ns."""
    now = itertools.count(0, 5)
    monkeypatch.setattr(_gather, "time", SimpleNamespace(perf_counter_ns=now.__next__))
    # Two readings a round: before the other's time is read, and after.
    read = [10 * n + 5 for n in range(_gather._ROUNDS)]
    reported = [moment + 1_000 - 2 * late for late, moment in enumerate(read)]
    assert _gather._compare_clocks(Reported(reported), index, 2) == found
