"""The call log: append-only, bounded, 48 bytes per host call."""

from __future__ import annotations

import collections
import functools
import operator
import struct
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from ._facts import LoweredSite, NotKept

ROW = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("lowered", "<u4"),
        ("crossing", "<u4"),
        ("element", "<i4"),
        ("thread", "<u4"),
        ("version", "<u4"),
        ("error", "<u4"),  # 0: none, else 1 + index into the errors
        ("queued_ns", "<i8"),  # in the queue; or of the first call of an executor's chunk; else 0
    ]
)
_row = struct.Struct("<qqIIiIIIq")
pack_row = _row.pack  # the fields of `ROW`
_RECENT = 4_096  # rows


class CallLog:
    """Rows of host calls; thread-safe.

    Each row is one `bytearray.extend`, which is atomic under the GIL, so no lock is held while
    user code runs and no row is ever torn. Rows beyond `capacity` are counted by site and error,
    but not kept.
    """

    def __init__(self, capacity: int) -> None:
        self._rows = bytearray()
        self._limit = capacity * ROW.itemsize
        self._overflow_lock = threading.Lock()
        self._not_kept: dict[tuple[int, int], NotKept] = {}

    def __len__(self) -> int:
        return len(self._rows) // ROW.itemsize

    def append(
        self, rows: bytes, first: bool = True, also: Sequence[Callable[[], object]] = ()
    ) -> None:
        """Log host calls.

        Args:
            rows: rows of `ROW`, whole.
            first: whether the first row is the first one of its crossing.
            also: functions in C to call in the same instant; nothing is logged if the first raises.
        """
        if len(self._rows) + len(rows) <= self._limit:
            if also:
                at_once(*also, functools.partial(self._rows.extend, rows))
            else:
                self._rows.extend(rows)
            return
        if len(rows) == ROW.itemsize:
            start, end, site, _, _, _, _, error, _ = _row.unpack(rows)
            self._overflowed([NotKept(site, error, 1, int(first), end - start)], *also)
            return
        kept, own = self.room(), np.frombuffer(rows, ROW)
        begins = np.diff(own["crossing"].astype(np.int64), prepend=-1) != 0
        begins[0] = first
        counted, taken = _counted(own[kept:], begins[kept:]), rows[: kept * ROW.itemsize]
        self._overflowed(counted, *also, functools.partial(self._rows.extend, taken))

    def room(self) -> int:
        """Return how many more rows will be kept."""
        return max(self._limit - len(self._rows), 0) // ROW.itemsize

    def count(self, calls: NotKept) -> None:
        """Count host calls of which no row is kept."""
        self._overflowed([calls])

    def fail(self, lowered: int, crossing: int, element: int, error: int) -> None:
        """Give a logged call without an error, or one that was only counted, an error."""
        size = _RECENT
        while True:
            since = max(len(self) - size, 0)
            rows = self.rows(since)
            own = (rows["crossing"] == crossing) & (rows["element"] == element)
            found = np.flatnonzero(own & (rows["error"] == 0))
            if found.size:
                row = rows[found[-1:]].copy()
                row["error"] = error
                at = (since + int(found[-1])) * ROW.itemsize
                self._rows[at : at + ROW.itemsize] = row.tobytes()
                return
            if since == 0:
                self._fail_counted(lowered, error)
                return
            size *= 8

    def not_kept(self) -> dict[tuple[int, int], NotKept]:
        """Return the calls that were counted but not kept so far, by site and error."""
        with self._overflow_lock:
            return dict(self._not_kept)

    def rows(self, since: int = 0) -> np.ndarray:
        """Return a read-only copy of the rows from index `since` on."""
        # A copy: a bytearray cannot grow while a view on it exists, and calls may be running.
        return np.frombuffer(bytes(self._rows[since * ROW.itemsize :]), ROW)

    def _fail_counted(self, lowered: int, error: int) -> None:
        """As `fail`, for a call without a row, whose time is taken to be the mean."""
        with self._overflow_lock:
            calls = self._not_kept[lowered, 0]
        crossings = calls.crossings if calls.calls == 1 else 0
        moved = 1, crossings, calls.host_ns // calls.calls
        fewer = NotKept(lowered, 0, *(-one for one in moved))
        self._overflowed([fewer, NotKept(lowered, error, *moved)])

    def _overflowed(self, counted: Iterable[NotKept], *also: Callable[[], object]) -> None:
        with self._overflow_lock:
            new: dict[tuple[int, int], NotKept] = {}
            for one in counted:
                key = one.lowered, one.error
                before = self._not_kept.get(key)
                new[key] = _plus(before, one) if before else one
            if also:
                at_once(*also, functools.partial(self._not_kept.update, new))
            else:
                self._not_kept.update(new)


def at_once(*steps: Callable[[], object]) -> None:
    """Call functions in C, between which no interrupt is raised and no other thread runs."""
    collections.deque(map(operator.call, steps), maxlen=0)


def _counted(rows: np.ndarray, begins: np.ndarray) -> list[NotKept]:
    """Count `rows` by site and error; `begins`: which are the first of their crossing."""
    found = []
    for lowered, error in np.unique(rows[["lowered", "error"]]).tolist():
        own = (rows["lowered"] == lowered) & (rows["error"] == error)
        taken = int((rows["end_ns"] - rows["start_ns"])[own].sum())
        found.append(NotKept(lowered, error, int(own.sum()), int(begins[own].sum()), taken))
    return found


def _plus(one: NotKept, other: NotKept, sign: int = 1) -> NotKept:
    return NotKept(*one[:2], *(a + sign * b for a, b in zip(one[2:], other[2:], strict=True)))


def counted_since(
    now: Mapping[tuple[int, int], NotKept], before: Mapping[tuple[int, int], NotKept]
) -> list[NotKept]:
    """Return how much `CallLog.not_kept` has grown since `before`."""
    found = [_plus(one, before[key], -1) if key in before else one for key, one in now.items()]
    return [one for one in found if one.calls]


def renumbered(
    known: Sequence[LoweredSite],
    calls: np.ndarray,
    new: Iterable[LoweredSite],
    more: Collection[LoweredSite],
) -> tuple[list[LoweredSite], np.ndarray]:
    """Reduce the known sites to those that a part of the log needs, and renumber its calls.

    Args:
        known: all sites; `calls` refer to them by index.
        calls: rows of the log.
        new: sites that come first, whether called or not.
        more: other sites to include, whether called or not.

    Returns:
        The sites, and the calls with indices into these.
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
