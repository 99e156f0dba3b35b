"""Record the host calls of an executor's workers, with their times on the recorder's clock."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._facts import ROW, Worker


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
        self._whos: dict[int, Any] = {}
        self._host = socket.gethostname()

    def facts(self) -> tuple[Worker, ...]:
        """Return the workers that made host calls."""
        return tuple(
            Worker(thread, who.name, who.pid, who.host, self._difference(thread)[1])
            for thread, who in list(self._whos.items())
        )

    def rows(
        self,
        who: Any,
        elements: np.ndarray,
        stamps: Sequence[int],
        sent_ns: int,
        received_ns: int,
    ) -> np.ndarray:
        """Return rows of calls that a worker made, without site, crossing, version and errors.

        Args:
            who: has the worker's host, pid, thread and name.
            elements: row-major batch element numbers in the order of the calls; -1: none.
            stamps: the worker's clock before the first and after each call.
            sent_ns: the recorder's clock when the chunk was sent.
            received_ns: the recorder's clock when the results had arrived.
        """
        thread = self._number(who)
        times = np.array(stamps, np.int64)
        if who.pid != os.getpid() or who.host != self._host:
            self._narrow(thread, int(times[-1]) - received_ns, int(times[0]) - sent_ns)
            times -= self._difference(thread)[0]
        rows = np.zeros(len(times) - 1, ROW)
        rows["start_ns"], rows["end_ns"] = times[:-1], times[1:]
        rows["element"], rows["thread"] = elements, thread
        rows["queued_ns"][0] = max(int(times[0]) - sent_ns, 0)
        return rows

    def _number(self, who: Any) -> int:
        key = who.host, who.pid, who.thread
        number = self._numbers.get(key)
        if number is None:
            name = who.name if who.pid == os.getpid() else f"pid {who.pid}"
            if who.host != self._host:
                name = f"{name} · {who.host}"
            number = self._enlist(f"worker {len(self._numbers) + 1} · {name}")
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
