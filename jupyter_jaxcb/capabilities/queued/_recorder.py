"""Report the host calls of crossings that were in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from ...recording import ROW, LoweredSite, PlainTimes, Recorder, WorkerRows


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
        "_lock", "_settled", "around", "clock", "crossed_ns", "crossing", "left", "numbers",
        "on_thread", "stale", "values", "whole",
    )  # fmt: skip
    masks = _CountedBefore()
    plain: Final[PlainTimes] = {}  # always: the times in the queue are recorded, too

    def __init__(
        self, recorder: Recorder, crossed_ns: int, calls: int, lock: AbstractContextManager[Any]
    ) -> None:
        self.whole = recorder
        self.clock, self.values = recorder.clock, recorder.values
        self.around, self.stale = recorder.around, recorder.stale
        self.numbers, self.on_thread = recorder.numbers, recorder.on_thread
        self.crossing = recorder.crossing
        self.crossed_ns, self.left, self._lock = crossed_ns, calls, lock
        self._settled = False

    def called(self, rows: bytes, first: bool = True) -> None:
        """As `Recorder.called`, but not for what comes back from a worker after it was settled."""
        with self._lock:
            if not self._settled:
                self.whole.called(rows, first)
                self.left -= len(rows) // ROW.itemsize

    def make_plain(self, lowered: LoweredSite, version: int, plain: object) -> None:
        """See `Recorder.make_plain`; do nothing."""

    def enlist_thread(self) -> int:
        """See `Recorder.enlist_thread`."""
        return self.whole.enlist_thread()

    def error(self, error: str) -> int:
        """See `Recorder.error`."""
        return self.whole.error(error)

    def worker_rows(self, part: WorkerRows) -> np.ndarray:
        """See `Recorder.worker_rows`."""
        return self.whole.worker_rows(part)

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
