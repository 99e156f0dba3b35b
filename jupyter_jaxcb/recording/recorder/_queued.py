"""Report the host calls of crossings that were in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .._facts import LoweredSite
from ._recorder import Recorder
from ._workers import WorkerRows


class _CountedBefore:
    """Stands for `Recorder.masks`: the program's crossing has counted its mask."""

    def add(self, lowered: LoweredSite, more: Sequence[int]) -> None:
        """Count nothing."""


class QueuedRecorder:
    """A recorder, as one crossing reports to it that comes out of the queue.

    It has what a crossing needs of a `Recorder`, whose attributes it shares. A call leaves `left`
    in the instant in which it gets its row, so each call of the crossing is in one of both.

    Attributes:
        whole: the recorder that was active when the program made the crossing.
        crossed_ns: when the program made the crossing.
        left: the number of its calls that are not recorded.
    """

    __slots__ = (
        "_lock",
        "_settled",
        "around",
        "clock",
        "crossed_ns",
        "left",
        "stale",
        "values",
        "whole",
    )
    masks = _CountedBefore()

    def __init__(
        self, recorder: Recorder, crossed_ns: int, calls: int, lock: AbstractContextManager[Any]
    ) -> None:
        self.whole = recorder
        self.clock, self.values = recorder.clock, recorder.values
        self.around, self.stale = recorder.around, recorder.stale
        self.crossed_ns, self.left, self._lock = crossed_ns, calls, lock
        self._settled = False

    def called(
        self, lowered: LoweredSite, version: int, start: int, end: int, error: str | None = None
    ) -> int:
        """See `Recorder.called`."""
        queued = start - self.crossed_ns
        with self._lock:
            crossing = self.whole.called(lowered, version, start, end, error, queued)
            self.left -= 1
        return crossing

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
        queued = stamps[0] - self.crossed_ns
        with self._lock:
            crossing = self.whole.called_elements(
                lowered, version, elements, stamps, failed, error, queued
            )
            self.left -= len(stamps) - 1
        return crossing

    def crossing(self) -> int:
        """See `Recorder.crossing`."""
        return self.whole.crossing()

    def called_by_workers(
        self, lowered: LoweredSite, version: int, crossing: int, part: WorkerRows, first: bool
    ) -> None:
        """See `Recorder.called_by_workers`; not for what comes back after it was settled."""
        with self._lock:
            if not self._settled:
                self.whole.called_by_workers(lowered, version, crossing, part, first)
                self.left -= len(part.stamps) - 1

    def refused(self, lowered: LoweredSite, crossing: int, element: int, error: str) -> None:
        """See `Recorder.refused`."""
        self.whole.refused(lowered, crossing, element, error)

    def settle(self, lowered: LoweredSite, *, ended: bool) -> None:
        """Count what is `left` of a crossing that is over: its calls will not be made."""
        with self._lock:
            left, self.left, self._settled = self.left, 0, True
            if left > 0:
                count = self.whole.queue.ended if ended else self.whole.queue.skipped
                count(lowered, left)
