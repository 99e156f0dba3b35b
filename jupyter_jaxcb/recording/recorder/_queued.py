"""Report the host calls of crossings that were in the queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._facts import LoweredSite
from ._recorder import Recorder


class _CountedBefore:
    """Stands for `Recorder.masks`: the program's crossing has counted its mask."""

    def add(self, lowered: LoweredSite, more: Sequence[int]) -> None:
        """Count nothing."""


class QueuedRecorder:
    """A recorder, as one crossing reports to it that comes out of the queue.

    It has what a crossing needs of a `Recorder`, whose attributes it shares.

    Attributes:
        whole: the recorder that was active when the program made the crossing.
    """

    __slots__ = ("_crossed_ns", "around", "clock", "stale", "values", "whole")
    masks = _CountedBefore()

    def __init__(self, recorder: Recorder, crossed_ns: int) -> None:
        self.whole = recorder
        self.clock, self.values = recorder.clock, recorder.values
        self.around, self.stale = recorder.around, recorder.stale
        self._crossed_ns = crossed_ns

    def called(
        self, lowered: LoweredSite, version: int, start: int, end: int, error: str | None = None
    ) -> int:
        """See `Recorder.called`."""
        queued = start - self._crossed_ns
        return self.whole.called(lowered, version, start, end, error, queued)

    def called_elements(
        self,
        lowered: LoweredSite,
        version: int,
        elements: np.ndarray,
        stamps: Sequence[int],
        failed: int | None = None,
        error: str = "",
    ) -> int:
        """See `Recorder.called_elements`."""
        queued = stamps[0] - self._crossed_ns
        return self.whole.called_elements(lowered, version, elements, stamps, failed, error, queued)
