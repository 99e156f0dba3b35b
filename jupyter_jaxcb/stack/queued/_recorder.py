"""Report the host calls of crossings that were in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from ...recording import ROW, LoweredSite, PlainTimes, Recorder


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
        "_lock", "_settled", "around", "clock", "crossed_ns", "crossing", "enlist_thread",
        "error", "left", "numbers", "on_thread", "refused", "stale", "values", "whole",
        "worker_rows",
    )  # fmt: skip
    masks = _CountedBefore()
    plain: Final[PlainTimes] = {}  # always: the times in the queue are recorded, too

    def __init__(
        self, recorder: Recorder, crossed_ns: int, calls: int, lock: AbstractContextManager[Any]
    ) -> None:
        self.whole = recorder
        self.clock, self.values = recorder.clock, recorder.values
        self.around, self.stale, self.refused = recorder.around, recorder.stale, recorder.refused
        self.numbers, self.error = recorder.numbers, recorder.error
        self.on_thread, self.enlist_thread = recorder.on_thread, recorder.enlist_thread
        self.crossing, self.worker_rows = recorder.crossing, recorder.worker_rows
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

    def settle(self, lowered: LoweredSite, *, ended: bool) -> None:
        """Count what is `left` of a crossing that is over: its calls will not be made."""
        with self._lock:
            left, self.left, self._settled = self.left, 0, True
            if left > 0:
                count = self.whole.queue.ended if ended else self.whole.queue.skipped
                count(lowered, left)
