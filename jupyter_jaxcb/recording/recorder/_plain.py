"""Plain calls: host calls of which a recording has nothing but the times.

A site's calls on one thread are plain once its sample values are taken, as long as nothing else is
wanted of them. Only their times are kept, in 16 bytes a call. The rows are made when somebody needs
them, so a call does not wait for that.
"""

from __future__ import annotations

import functools
import itertools
import struct
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .._columns import ROW, CallLog, pack_row
from .._facts import LoweredSite

PART_BYTES = 1 << 20  # of one site on one thread; with so many times, rows are made
_FEW = 16  # calls whose rows are made faster in Python than in NumPy
_times = struct.Struct("<qq")  # start and end
pack_times = _times.pack

# By site: the ident of the thread whose calls are plain, where their times go, at which length to
# call `Recorder.plain_called`, the version of the host function's body, and the recorder's clock.
PlainTimes = dict[LoweredSite, tuple[int, bytearray, int, int, Callable[[], int]]]
NOT_PLAIN = (0, bytearray(), 0, 0, time.perf_counter_ns)  # no thread has this ident


class _Key(NamedTuple):
    lowered: int
    thread: int
    version: int


class PlainCalls:
    """The times of the plain calls that are not in the log yet; thread-safe.

    Args:
        log: gets the rows.
        crossings: numbers of new crossings.

    Attributes:
        parts: the times, as packed by `pack_times`; all are empty after `collect`.
    """

    def __init__(self, log: CallLog, crossings: Iterator[int]) -> None:
        self._log = log
        self._crossings = crossings
        self.parts: dict[_Key, bytearray] = {}
        self._attempts: set[object] = set()  # to collect, since the last one that won

    def times(self, lowered: int, thread: int, version: int) -> bytearray:
        """Return where the times of certain calls go."""
        return self.parts.setdefault(_Key(lowered, thread, version), bytearray())

    def collect_long(self) -> None:
        """As `collect`, if some times are long."""
        if any(len(times) >= PART_BYTES for times in list(self.parts.values())):
            self.collect()

    def collect(self) -> None:
        """Move the calls that have ended into the log.

        Without a lock, because an interrupt or a destructor may come between any two lines: of all
        who make rows of the same times, the first one to log them wins, and the others begin again.
        """
        while any(self.parts.values()):
            attempt = object()
            self._attempts.add(attempt)
            rows, taken = self._take()
            wins = functools.partial(self._attempts.remove, attempt)
            try:
                self._log.append(rows, also=(wins, self._attempts.clear, *taken))
            except KeyError:  # from `wins`
                continue
            return

    def _take(self) -> tuple[bytes, list[Callable[[], object]]]:
        """Return the rows, and functions that remove their times."""
        found: list[tuple[_Key, bytes]] = []
        taken: list[Callable[[], object]] = []
        for key, times in list(self.parts.items()):
            ended = bytes(times)  # more calls may end meanwhile
            if ended:
                found.append((key, ended))
                taken.append(functools.partial(times.__delitem__, slice(len(ended))))
        count = sum(len(ended) for _, ended in found) // _times.size
        return (self._few(found) if count <= _FEW else self._many(found, count)), taken

    def _few(self, found: list[tuple[_Key, bytes]]) -> bytes:
        calls = [
            (end, start, key) for key, ended in found for start, end in _times.iter_unpack(ended)
        ]
        calls.sort(key=lambda call: call[0])
        return b"".join(
            pack_row(start, end, site, next(self._crossings), -1, thread, version, 0, 0)
            for end, start, (site, thread, version) in calls
        )

    def _many(self, found: list[tuple[_Key, bytes]], count: int) -> bytes:
        rows, at = np.zeros(count, ROW), 0
        for key, ended in found:
            times = np.frombuffer(ended, "<i8").reshape(-1, 2)
            part = rows[at : at + len(times)]
            part["start_ns"], part["end_ns"] = times[:, 0], times[:, 1]
            part["lowered"], part["thread"], part["version"] = key
            at += len(times)
        if len(found) > 1:
            rows = rows[np.argsort(rows["end_ns"], kind="stable")]
        rows["element"] = -1
        rows["crossing"] = np.fromiter(itertools.islice(self._crossings, count), np.uint32, count)
        return rows.tobytes()
