"""The call log: append-only, bounded, 48 bytes a host call."""

from __future__ import annotations

import struct
import threading
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ._facts import LoweredSite

ROW = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("lowered", "<u4"),
        ("crossing", "<u4"),
        ("lane", "<i4"),
        ("thread", "<u4"),
        ("version", "<u4"),
        ("error", "<u4"),  # 0: none, else 1 + index into the recorder's errors
        ("queued_ns", "<i8"),  # of the first call of a chunk that an executor ran; else 0
    ]
)
_PACK = struct.Struct("<qqIIiIII8x").pack  # a call that nobody queued: zeros, without an argument


class CallLog:
    """Rows of host calls, filled from any thread.

    One `bytearray.extend` a row: it is atomic under the interpreter lock, so nothing is
    held while user code runs and no row is ever torn. Rows beyond `capacity` are counted,
    not kept.
    """

    def __init__(self, capacity: int) -> None:
        self._rows = bytearray()
        self._limit = capacity * ROW.itemsize
        self._overflow_lock = threading.Lock()
        self.overflow = 0  # host calls that came after the log was full

    def __len__(self) -> int:
        return len(self._rows) // ROW.itemsize

    def append(
        self,
        start: int,
        end: int,
        lowered: int,
        crossing: int,
        thread: int,
        version: int,
        error: int,
    ) -> None:
        """Logs one host call that has no lane."""
        if len(self._rows) < self._limit:
            self._rows.extend(_PACK(start, end, lowered, crossing, -1, thread, version, error))
        else:
            self._overflowed(1)

    def append_block(self, rows: np.ndarray) -> None:
        """Logs all host calls of one crossing (an array of `ROW`) at once."""
        room = (self._limit - len(self._rows)) // ROW.itemsize
        kept = rows[: max(room, 0)]
        if len(kept) < len(rows):
            self._overflowed(len(rows) - len(kept))
        self._rows.extend(kept.tobytes())

    def rows(self, since: int = 0) -> np.ndarray:
        """A read-only copy of the rows from row number `since` on."""
        # A copy: a bytearray with a view on it cannot grow, and calls may still be coming.
        return np.frombuffer(bytes(self._rows[since * ROW.itemsize :]), ROW)

    def _overflowed(self, count: int) -> None:
        with self._overflow_lock:
            self.overflow += count


def renumbered(
    known: Sequence[LoweredSite],
    calls: np.ndarray,
    new: Iterable[LoweredSite],
    more: Collection[LoweredSite],
) -> tuple[list[LoweredSite], np.ndarray]:
    """The sites of a part of the log, and its calls by their numbers among these.

    Args:
        known: what the numbers of `calls` mean.
        calls: rows of the log.
        new: sites that come first, called or not.
        more: others that are among them, called or not.
    """
    used = {known[number] for number in np.unique(calls["lowered"]).tolist()}
    used.update(more)
    lowered = list(dict.fromkeys([*new, *(fact for fact in known if fact in used), *more]))
    place = {fact: number for number, fact in enumerate(lowered)}
    calls = calls.copy()
    if len(calls):
        numbers = np.array([place.get(fact, 0) for fact in known], np.uint32)
        calls["lowered"] = numbers[calls["lowered"]]
    calls.flags.writeable = False
    return lowered, calls
