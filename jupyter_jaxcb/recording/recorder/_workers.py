"""Record the host calls of an executor's workers, with their times on the recorder's clock."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from .._columns import ROW
from .._facts import Worker

_NAME = "worker {} · {}"  # of a thread: number of the worker, and its own name
_WORKER = re.compile(_NAME.format(r"\d+", ""))


def names_worker(thread: str) -> bool:
    """Return whether a thread's name is that of a worker, maybe after that of its process."""
    return _WORKER.search(thread) is not None


class Who(Protocol):
    """The identity that a worker reports."""

    @property
    def host(self) -> str: ...
    @property
    def pid(self) -> int: ...
    @property
    def thread(self) -> int: ...
    @property
    def name(self) -> str: ...


class WorkerRows(NamedTuple):
    """Host calls that one worker made, one after the other."""

    who: Who
    elements: np.ndarray  # row-major batch element numbers in the order of the calls; -1: none
    stamps: Sequence[int]  # the worker's clock before the first and after each call
    sent_ns: int  # the recorder's clock when the chunk was sent
    received_ns: int  # the recorder's clock when the results had arrived


class Workers:
    """The workers that made calls for a recorder; each is one of its threads.

    Times of another process are converted to the recorder's clock. An element cannot begin before
    it was sent, nor end after its result was received, so each chunk bounds the clock difference
    from both sides.

    Args:
        enlist: adds a name to the recorder's threads and returns its number.
    """

    def __init__(self, enlist: Callable[[str], int]) -> None:
        self._enlist = enlist
        self._numbers: dict[tuple[str, int, int], int] = {}  # threads
        self._bounds: dict[int, tuple[int, int]] = {}  # of the clock difference, by thread
        self._whos: dict[int, Who] = {}
        self._host = socket.gethostname()

    def facts(self) -> tuple[Worker, ...]:
        """Return the workers that made host calls."""
        return tuple(
            Worker(thread, who.name, who.pid, who.host, self._difference(thread)[1])
            for thread, who in list(self._whos.items())
        )

    def rows(self, part: WorkerRows) -> np.ndarray:
        """Return rows of the log without site, crossing, version and errors."""
        thread = self._number(part.who)
        times = np.array(part.stamps, np.int64)
        if part.who.pid != os.getpid() or part.who.host != self._host:
            self._narrow(thread, int(times[-1]) - part.received_ns, int(times[0]) - part.sent_ns)
            times -= self._difference(thread)[0]
        rows = np.zeros(len(times) - 1, ROW)
        rows["start_ns"], rows["end_ns"] = times[:-1], times[1:]
        rows["element"], rows["thread"] = part.elements, thread
        rows["queued_ns"][0] = max(int(times[0]) - part.sent_ns, 0)
        return rows

    def _number(self, who: Who) -> int:
        key = who.host, who.pid, who.thread
        number = self._numbers.get(key)
        if number is None:
            name = who.name if who.pid == os.getpid() else f"pid {who.pid}"
            if who.host != self._host:
                name = f"{name} · {who.host}"
            number = self._enlist(_NAME.format(len(self._numbers) + 1, name))
            self._numbers[key], self._whos[number] = number, who
        return number

    def _narrow(self, thread: int, least: int, most: int) -> None:
        low, high = self._bounds.get(thread, (least, most))
        low, high = max(low, least), min(high, most)
        self._bounds[thread] = (low, high) if low <= high else (least, most)  # clocks drift

    def _difference(self, thread: int) -> tuple[int, int]:
        """Return the worker's clock minus the recorder's, and the largest possible error."""
        low, high = self._bounds.get(thread, (0, 0))
        if low <= 0 <= high and self._whos[thread].host == self._host:
            return 0, 0  # processes of one machine read the same clock
        return (low + high) // 2, (high - low + 1) // 2
