"""Group batch elements into chunks, and cut the operands to match."""

from __future__ import annotations

import collections
import threading
import weakref
from collections.abc import Sequence

import numpy as np

from jupyter_jaxcb_worker import Column, shared_if_large

from ...stack.call import HostFunction
from ...stack.dispatch import Elements

_SHARE = 2  # a chunk has at most 1/_SHARE of a worker's share of the remaining elements
_MEMORY = 0.5  # weight of the latest chunk in the running mean


class ElementCost:
    """The measured cost of one batch element of a host function."""

    def __init__(self) -> None:
        self.mean_ns: float | None = None
        self.version = 0  # version of the host function's body

    def measured(self, elements: int, took_ns: int) -> None:
        """Update the mean: `elements` batch elements took `took_ns` together."""
        if elements:
            own = max(took_ns, 1) / elements
            known = self.mean_ns
            self.mean_ns = own if known is None else known + _MEMORY * (own - known)

    def chunk(self, left: int, workers: int, target_ns: int) -> int:
        """Return how many of the `left` elements to send together: about `target_ns` of work.

        All of them if together they take no longer than that.
        """
        if self.mean_ns is None:
            return 1
        if self.mean_ns * left <= target_ns:
            return left
        worth = int(target_ns / self.mean_ns)
        return max(1, min(worth, -(-left // (_SHARE * workers))))


_costs: weakref.WeakKeyDictionary[HostFunction, ElementCost] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def element_cost_of(host: HostFunction) -> ElementCost:
    """Return the measured cost of a host function; empty again if it has a new body."""
    with _lock:
        cost = _costs.get(host)
        if cost is None:
            cost = _costs[host] = ElementCost()
    if cost.version != host.version:
        cost.mean_ns, cost.version = None, host.version
    return cost


class ChunkQueue:
    """Decides which calls of a crossing to send next.

    Args:
        count: the number of calls.
        size: how many calls to send together; None: as many as their cost suggests.
        cost: the measured cost of a call.
        workers: the number of workers.
        target_ns: how long the calls of one chunk should take, at least.
    """

    def __init__(
        self, count: int, size: int | None, cost: ElementCost, workers: int, target_ns: int
    ) -> None:
        self._count, self._size, self._cost = count, size, cost
        self._workers, self._target_ns = workers, target_ns
        self._next = 0
        self._again: collections.deque[tuple[int, int]] = collections.deque()

    def again(self, start: int, stop: int) -> None:
        """Send these calls again, before any others."""
        if start < stop:
            self._again.append((start, stop))

    def one_by_one(self, start: int, stop: int) -> None:
        """As `again`, but each call in its own chunk, so that a failure affects only one."""
        self._again.extend((call, call + 1) for call in range(start, stop))

    def next(self, before: int | None) -> tuple[int, int] | None:
        """Return the next calls to send as ``(start, stop)``; None if there are none.

        Args:
            before: the first call that failed, if any; it and later calls are not sent.
        """
        before = self._count if before is None else before
        while self._again:
            start, stop = self._again.popleft()
            if start < before:
                return start, min(stop, before)
        left = before - self._next
        if left <= 0:
            return None
        size = self._size or self._cost.chunk(left, self._workers, self._target_ns)
        start, self._next = self._next, self._next + min(size, left)
        return start, self._next


class OperandSlices:
    """The operands of one crossing, cut into chunks by call numbers.

    Args:
        operands: the operands as XLA passes them.
        schedule: the batch element of each call; None for a single call without a batch.
        near: whether only processes of this machine get them.
    """

    def __init__(
        self, operands: Sequence[np.ndarray], schedule: Elements | None, *, near: bool = False
    ) -> None:
        self._operands = operands
        self._plan = [(0, None)] * len(operands) if schedule is None else schedule.plan
        self._shared = [
            shared_if_large(operand) if near and rows is None else None
            for operand, (_, rows) in zip(operands, self._plan, strict=True)
        ]
        self.count = 1 if schedule is None else schedule.order.size

    def cut(self, start: int, stop: int) -> list[Column]:
        """Return the operands of the calls from `start` to `stop`."""
        return [
            Column(operand, whole=True, shared=shared)
            if rows is None
            else self._column(operand, axes, rows, start, stop)
            for operand, shared, (axes, rows) in zip(
                self._operands, self._shared, self._plan, strict=True
            )
        ]

    @staticmethod
    def _column(operand: np.ndarray, axes: int, rows: np.ndarray, start: int, stop: int) -> Column:
        flat = operand.reshape((int(np.prod(operand.shape[:axes])), *operand.shape[axes:]))
        own = rows[start:stop]
        if (np.diff(own) == 1).all():
            return Column(flat[own[0] : own[-1] + 1])
        picked, index = np.unique(own, return_inverse=True)
        chosen = flat[picked]
        chosen.flags.writeable = False
        return Column(chosen, index)
