"""Plain calls: host calls of which a recording has nothing but the times.

A site's calls on one thread are plain once its sample values are taken, as long as nothing else is
wanted of them. A call adds its start and end to a list, which is the least that it can do. From
time to time the list is packed, to 16 bytes a call; rows are made when somebody needs them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import struct
import time
from collections.abc import Callable, Iterator

import numpy as np

from .._facts import ROW, LoweredSite
from ._log import CallLog, at_once, pack_row

RECENT = 2 * 1_024  # numbers: with so many, a list is packed
PACKED_BYTES = 1 << 20  # of one site on one thread: with so many, rows are made
_FEW = 16  # calls whose rows are made faster in Python than in NumPy
_times = struct.Struct("<qq")  # start and end

# By site: the ident of the thread whose calls are plain, where their times go, at which length to
# call `Recorder.plain_called`, the version of the host function's body, and the recorder's clock.
PlainTimes = dict[LoweredSite, tuple[int, list[int], int, int, Callable[[], int]]]
NOT_PLAIN: tuple[int, list[int], int, int, Callable[[], int]]
NOT_PLAIN = (0, [], 0, 0, time.perf_counter_ns)  # no thread has this ident


_Key = tuple[int, int, int]  # numbers of site, thread, and version of the host function's body


class PlainCalls:
    """The times of the plain calls that are not in the log yet; thread-safe.

    It has no lock, because an interrupt or a destructor may come between any two lines: of all who
    take the same times, the first one to put them elsewhere wins, and the others begin again.

    Args:
        log: gets the rows.
        crossings: numbers of new crossings.
    """

    def __init__(self, log: CallLog, crossings: Iterator[int]) -> None:
        self._log = log
        self._crossings = crossings
        # Start, end, start, end, ...: the earlier ones packed, and the recent ones.
        self._parts: dict[_Key, tuple[bytearray, list[int]]] = {}
        self._attempts: set[object] = set()  # to take times, since the last one that won

    def times(self, lowered: int, thread: int, version: int) -> list[int]:
        """Return where start and end of certain calls go."""
        return self._parts.setdefault((lowered, thread, version), (bytearray(), []))[1]

    def pack(self) -> None:
        """Pack long lists, and make rows of many packed times."""
        for packed, recent in list(self._parts.values()):
            if len(recent) >= RECENT:
                taking, times = self._attempt(), _packed(recent)
                packing = functools.partial(packed.extend, times)
                with contextlib.suppress(KeyError):  # from `taking`
                    at_once(*taking, packing, _remove(recent, len(times) // 8))
            if len(packed) >= PACKED_BYTES:
                self.collect()

    def collect(self) -> None:
        """Move the calls that have ended into the log."""
        while self.any():
            taking = self._attempt()
            rows, taken = self._take()
            try:
                self._log.append(rows, also=(*taking, *taken))
            except KeyError:  # from `taking`
                continue
            return

    def any(self) -> bool:
        """Return whether there are times."""
        return any(map(any, list(self._parts.values())))  # parts may be added meanwhile

    def _attempt(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """Return what to call in the instant in which times are taken; raises KeyError."""
        attempt = object()
        self._attempts.add(attempt)
        return functools.partial(self._attempts.remove, attempt), self._attempts.clear

    def _take(self) -> tuple[bytes, list[Callable[[], object]]]:
        """Return the rows, and functions that remove their times."""
        found: list[tuple[_Key, bytes]] = []
        taken: list[Callable[[], object]] = []
        for key, (packed, recent) in list(self._parts.items()):
            earlier, later = bytes(packed), _packed(recent)  # more calls may end meanwhile
            if earlier or later:
                found.append((key, earlier + later))
                taken += _remove(packed, len(earlier)), _remove(recent, len(later) // 8)
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


def _packed(times: list[int]) -> bytes:
    times = times[:]
    return struct.pack(f"<{len(times)}q", *times)


def _remove(times: bytearray | list[int], count: int) -> Callable[[], object]:
    return functools.partial(times.__delitem__, slice(count))
