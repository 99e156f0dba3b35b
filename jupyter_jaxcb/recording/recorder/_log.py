"""What a recorder collects in large numbers: rows of host calls, and counts by site or name."""

from __future__ import annotations

import collections
import functools
import operator
import struct
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._facts import ROW

_row = struct.Struct("<qqIIiIIIq")
pack_row = _row.pack  # the fields of `ROW`
Step = Callable[[], object]
Sums = Mapping[tuple[Hashable, str], int]


class Counts:
    """Sums by key and name, such as a site and ``"waits"``; thread-safe.

    The keys are sites, programs, names of host objects, and pairs of a site's and an error's
    number. The names are those of fields of the facts that are made of them.
    """

    def __init__(self) -> None:
        self._sums: dict[tuple[Hashable, str], int] = {}
        self._lock = threading.RLock()  # a destructor may run a program meanwhile

    def add(self, key: Hashable, **more: int) -> None:
        """Add to the sums of a key, which begin with 0."""
        with self._lock:
            sums = self._sums
            sums.update({(key, name): sums.get((key, name), 0) + n for name, n in more.items()})

    def count(self, key: Hashable, name: str) -> None:
        """Add 1 to a sum."""
        with self._lock:
            self._sums[key, name] = self._sums.get((key, name), 0) + 1

    def add_at_once(
        self, added: Iterable[tuple[Hashable, Mapping[str, int]]], also: Sequence[Step] = ()
    ) -> None:
        """Add to the sums of several keys.

        Args:
            added: keys, and what to add.
            also: functions in C to call in the same instant; nothing is added if the first raises.
        """
        with self._lock:
            sums: dict[tuple[Hashable, str], int] = {}
            for key, more in added:
                for name, number in more.items():
                    whose = key, name
                    sums[whose] = sums.get(whose, self._sums.get(whose, 0)) + number
            at_once(*also, functools.partial(self._sums.update, sums))

    def copy(self) -> Sums:
        """Return the sums so far, to pass to `since` later."""
        with self._lock:
            return dict(self._sums)

    def since(self, before: Sums) -> dict[Hashable, dict[str, Any]]:
        """Return by key what was added since `before`, without zeros: fields of the facts."""
        added: dict[Hashable, dict[str, Any]] = {}
        for (key, name), total in self.copy().items():
            if number := total - before.get((key, name), 0):
                added.setdefault(key, {})[name] = number
        return added


class CallLog:
    """Rows of host calls; thread-safe.

    Each row is one `bytearray.extend`, which is atomic under the GIL, so no lock is held while
    user code runs and no row is ever torn.

    Args:
        capacity: the number of rows that are kept.
        counts: gets the calls, crossings and host_ns of other rows, by the numbers of site and
            error.
    """

    def __init__(self, capacity: int, counts: Counts) -> None:
        self._rows = bytearray()
        self._limit = capacity * ROW.itemsize
        self._counts = counts

    def __len__(self) -> int:
        return len(self._rows) // ROW.itemsize

    def append(self, rows: bytes, first: bool = True, also: Sequence[Step] = ()) -> None:
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
            more = {"calls": 1, "crossings": int(first), "host_ns": end - start}
            if also:
                self._counts.add_at_once([((site, error), more)], also)
            else:
                self._counts.add((site, error), **more)
            return
        kept, calls = self.room(), np.frombuffer(rows, ROW)
        begins = np.diff(calls["crossing"].astype(np.int64), prepend=-1) != 0
        begins[0] = first
        taken = functools.partial(self._rows.extend, rows[: kept * ROW.itemsize])
        self._counts.add_at_once(_counted(calls[kept:], begins[kept:]), (*also, taken))

    def room(self) -> int:
        """Return how many more rows will be kept."""
        return max(self._limit - len(self._rows), 0) // ROW.itemsize

    def rows(self, since: int = 0) -> np.ndarray:
        """Return a read-only copy of the rows from index `since` on."""
        # A copy: a bytearray cannot grow while a view on it exists, and calls may be running.
        return np.frombuffer(bytes(self._rows[since * ROW.itemsize :]), ROW)


def at_once(*steps: Step) -> None:
    """Call functions in C, between which no interrupt is raised and no other thread runs."""
    collections.deque(map(operator.call, steps), maxlen=0)


def _counted(
    rows: np.ndarray, begins: np.ndarray
) -> Iterable[tuple[tuple[int, int], dict[str, int]]]:
    """Count `rows` by site and error; `begins`: which are the first of their crossing."""
    for lowered, error in np.unique(rows[["lowered", "error"]]).tolist():
        own = (rows["lowered"] == lowered) & (rows["error"] == error)
        host_ns = int((rows["end_ns"] - rows["start_ns"])[own].sum())
        crossings = int(begins[own].sum())
        yield (
            (lowered, error),
            {"calls": int(own.sum()), "crossings": crossings, "host_ns": host_ns},
        )
