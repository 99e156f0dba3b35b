"""The used memory, by which a profile ends before it takes too much, on each system."""

import ctypes
import sys
import types

import pytest

from jupyter_jaxcb.diagnostics.profile import _session
from jupyter_jaxcb.diagnostics.profile._session import used_bytes


class Usage(types.SimpleNamespace):
    """Stands for the module `resource`."""

    RUSAGE_SELF = 0

    def getrusage(self, who):
        assert who == self.RUSAGE_SELF
        return types.SimpleNamespace(ru_maxrss=3_000_000)


@pytest.fixture
def without_figure(monkeypatch):
    """The C library lacks ``mallinfo2``, as musl and older GNU libraries do."""
    monkeypatch.setattr(_session, "resource", Usage())
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="a GNU C library is needed",
)
def test_small_allocations_are_counted_while_they_are_used():
    before = used_bytes()
    pieces = [bytearray(10_000) for _ in range(1000)]
    assert 10e6 <= used_bytes() - before < 20e6
    del pieces
    assert used_bytes() - before < 10e6


@pytest.mark.parametrize(("system", "expected"), [("linux", 3_072_000_000), ("darwin", 3_000_000)])
def test_without_its_figure_the_peak_of_the_process_counts(
    system, expected, without_figure, monkeypatch
):
    """Linux tells it in units of 1024 bytes, macOS in bytes."""
    monkeypatch.setattr(sys, "platform", system)
    assert used_bytes() == expected


def test_system_that_tells_nothing_has_no_figure(monkeypatch):
    monkeypatch.setattr(_session, "resource", None)
    monkeypatch.setattr(sys, "platform", "win32")
    assert used_bytes() is None
