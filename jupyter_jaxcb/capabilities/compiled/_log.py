"""Give the calls that compiled code logs to the recorder."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...recording import (
    COMPILED_THREAD,
    ROW,
    LoweredSite,
    Recorder,
    active,
    add_native_log,
    record_call,
    record_elements,
)
from ._handler import (
    BLOCK,
    CLAIMED,
    COLLECTED,
    END,
    LAST_ROW,
    LOST,
    LOST_CYCLES,
    ON,
    RAN,
    START,
    head,
    read_cycles,
    rows,
)

_READINGS = 5  # of counter and clock at once: the machine may stop the process between the two
_PATIENCE = 1_000  # times to look for a row that a thread has claimed and not written yet


class _Listed(NamedTuple):
    """What the log keeps of a block until its last calls are recorded."""

    lowered: LoweredSite
    words: np.ndarray


class NativeLog:
    """The calls of compiled code since the recorder was switched on."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self._sites: dict[int, _Listed] = {}
        self._gone: list[int] = []  # numbers of blocks that are gone; without the lock
        self._counted: dict[int, np.ndarray] = {}  # what `_lost` has returned, by number
        self._recorder: Recorder | None = None
        self._began = (0, 0)  # cycles, and nanoseconds of the recorder's clock

    def enlist(self, lowered: LoweredSite, words: np.ndarray) -> int:
        """Return the number under which the calls of a block, by its words, are logged."""
        with self._lock:
            if self._recorder is None:  # else their calls are still to be recorded
                self._forget(len(self._gone))
            number = next(self._numbers)
            self._sites[number] = _Listed(lowered, words)
            return number

    def gone(self, number: int) -> None:
        """Forget a block that is gone, when its calls have been recorded."""
        self._gone.append(number)

    def switch(self, recorder: Recorder | None) -> None:
        """Log for `recorder` from now on."""
        with self._lock:
            self._collect()
            self._recorder = recorder
            head[ON] = recorder is not None
            if recorder is not None:
                self._began = _now(recorder)

    def collect(self, recorder: Recorder) -> None:
        """Give all calls that ended so far to `recorder`, if it is the one that is active."""
        with self._lock:
            if recorder is self._recorder:
                self._collect()

    def times(self, cycles: np.ndarray, recorder: Recorder) -> np.ndarray:
        """Return the times of the recorder's clock at which the counter had these values.

        Each call measures the rate of the counter again, so times of one crossing belong together.
        """
        (first, began), (last, now) = self._began, _now(recorder)
        return began + ((cycles - first) * ((now - began) / max(last - first, 1))).astype(np.int64)

    def time(self, cycles: int, recorder: Recorder) -> int:
        """As `times`, for one value."""
        return int(self.times(np.array([cycles]), recorder)[0])

    def span(self, start: int, end: int, recorder: Recorder) -> tuple[int, int]:
        """As `times`, for one crossing that has just ended."""
        (first, began), (last, now) = self._began, _now(recorder, 1)
        rate = (now - began) / max(last - first, 1)
        return began + int((start - first) * rate), began + int((end - first) * rate)

    def _collect(self) -> None:
        gone, recorder = len(self._gone), self._recorder  # these have written all their rows
        found, complete = self._taken()
        if recorder is not None:
            numbers = found[:, BLOCK]
            alone = len(found) > 0 and (numbers == numbers[0]).all()
            for number in [int(numbers[0])] if alone else np.unique(numbers).tolist():
                if number not in self._sites:  # a row from before the recorder was switched on
                    continue
                own = found if alone else found[numbers == number]
                starts, ends = self.times(own[:, [START, END]].T, recorder)
                _record(recorder, self._sites[number].lowered, own[:, RAN], starts, ends)
            for lowered, crossings, cycles in self._lost():
                span = self.times(np.array([self._began[0], self._began[0] + cycles]), recorder)
                recorder.not_kept(lowered, crossings, int(span[1] - span[0]))
        if complete:
            self._forget(gone)

    def _forget(self, count: int) -> None:
        """Forget the first `count` of the blocks that are gone."""
        for number in self._gone[:count]:
            del self._sites[number]
            self._counted.pop(number, None)
        del self._gone[:count]

    def _taken(self) -> tuple[np.ndarray, bool]:
        """Take the rows that are complete out of the log; return whether these were all."""
        first, last = int(head[COLLECTED]), int(head[CLAIMED])
        start, count = first & LAST_ROW, last - first
        parts = [rows[start : start + count], rows[: max(start + count - len(rows), 0)]]
        for _ in range(_PATIENCE):
            if all(part[:, END].all() for part in parts):
                break
            time.sleep(0)
        # Before they are copied: a row may be completed meanwhile.
        complete = np.concatenate([part[:, END] != 0 for part in parts])
        taken = count if complete.all() else int(complete.argmin())
        parts = [parts[0][:taken], parts[1][: max(taken - len(parts[0]), 0)]]
        found = np.concatenate(parts)
        for part in parts:
            part[:, END] = 0
        head[COLLECTED] = first + taken
        return found, taken == count

    def _lost(self) -> Iterator[tuple[LoweredSite, int, int]]:
        """Yield the crossings that found the log full since the last time, and their cycles."""
        for number, (lowered, words) in self._sites.items():
            now = words[[LOST, LOST_CYCLES]]
            crossings, cycles = (now - self._counted.get(number, 0)).tolist()
            if crossings:
                self._counted[number] = now
                yield lowered, crossings, cycles


def _record(
    recorder: Recorder,
    lowered: LoweredSite,
    versions: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Record crossings of one site.

    Whole crossings are measured, so each batch element gets an equal share of the time.

    Args:
        recorder: the recorder.
        lowered: the site.
        versions: the version of the host function's body in each crossing.
        starts: when each crossing began.
        ends: when each crossing ended.
    """
    count = lowered.elements or 1
    kept = min(recorder.room() // count, len(starts))
    rows = np.zeros((kept, count), ROW)
    share = (ends[:kept] - starts[:kept]) / count
    for field, edge in (("start_ns", 0), ("end_ns", 1)):
        passed = (share[:, None] * np.arange(edge, count + edge)).astype(np.int64)
        rows[field] = starts[:kept, None] + passed
    rows["lowered"] = recorder.numbers[lowered]
    rows["crossing"] = recorder.crossings(kept)[:, None]
    rows["element"] = -1 if lowered.elements is None else np.arange(count)
    rows["thread"] = recorder.thread_named(COMPILED_THREAD)
    rows["version"] = versions[:kept, None]
    if kept:
        recorder.called(rows.tobytes())
    if kept < len(starts):
        recorder.not_kept(lowered, len(starts) - kept, int((ends - starts)[kept:].sum()))


def _now(recorder: Recorder, count: int = _READINGS) -> tuple[int, int]:
    """Return the counter and the time: of `count` readings, the one that took least."""
    readings = [(read_cycles(), recorder.clock(), read_cycles()) for _ in range(count)]
    before, now, after = min(readings, key=lambda one: one[2] - one[0])
    return (before + after) // 2, now


log = NativeLog()
add_native_log(log)


def made(lowered: LoweredSite, needed: np.ndarray, version: int, start: int, end: int) -> None:
    """Record a crossing with a mask that made calls for the batch elements `needed`."""
    recorder = active()
    if recorder is None:
        return
    _count(recorder, lowered, needed)
    began, ended = log.span(start, end, recorder)
    if lowered.elements is not None:
        stamps = np.linspace(began, ended, len(needed) + 1).astype(np.int64).tolist()
        record_elements(recorder, lowered, version, needed, stamps)
    elif len(needed):
        record_call(recorder, lowered, version, began, ended)


def _count(recorder: Recorder, lowered: LoweredSite, needed: np.ndarray) -> None:
    if lowered.calls_each_time is None:
        recorder.counts.add(lowered, elements=lowered.elements or 1, needed=len(needed))


def failed(
    lowered: LoweredSite,
    version: int,
    operands: Sequence[np.ndarray],
    needed: np.ndarray,
    at: int,
    start: int,
    error: str,
) -> None:
    """Record a crossing that failed in its batch element `at`, and the values of that call."""
    recorder = active()
    if recorder is None or not start:
        return
    now = recorder.clock()
    began = min(log.time(start, recorder), now)
    _count(recorder, lowered, needed)
    if lowered.elements is None:
        crossing = record_call(recorder, lowered, version, began, now, error)
        element = -1
    else:
        needed = needed if len(needed) else np.array([at], np.int32)
        place = int(np.searchsorted(needed, at))  # among the calls
        stamps = np.linspace(began, now, place + 2).astype(np.int64).tolist()
        crossing = record_elements(recorder, lowered, version, needed, stamps, place, error)
        element = at
    recorder.values.take(lowered, crossing, element, operands, (), group="failed")
