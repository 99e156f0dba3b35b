"""Messages between two processes bound the difference between their clocks."""

import itertools
import struct
from types import SimpleNamespace

import pytest

from jupyter_jaxcb.diagnostics.gather import _gather


class FakeRendezvous:
    """A rendezvous in which the other process sends these times."""

    def __init__(self, times):
        self._times = iter(times)

    def post(self, name, data):
        pass

    def read(self, name, process):
        return struct.pack("<q", next(self._times))


@pytest.mark.parametrize(("index", "found"), [(0, {"most": [0, -1_000]}), (1, {"least": 1_000})])
def test_fastest_message_bounds_the_difference(index, found, monkeypatch):
    """The other clock is ahead by 1,000 ns; messages take 0, 2, 4 ... ns."""
    now = itertools.count(0, 5)
    monkeypatch.setattr(_gather, "time", SimpleNamespace(perf_counter_ns=now.__next__))
    # Each round reads the clock twice: before and after the message arrives.
    arrivals = [10 * n + 5 for n in range(_gather._ROUNDS)]
    sent = [arrival + 1_000 - 2 * n for n, arrival in enumerate(arrivals)]
    assert _gather._compare_clocks(FakeRendezvous(sent), index, 2) == found
