"""Which batch elements are sent together, and what of the operands goes with them."""

from __future__ import annotations

import collections
import threading
import weakref
from collections.abc import Sequence

import numpy as np

from jupyter_jaxcb_worker import Column, shared_if_large

from ..core import ExecutorOptions, HostFunction
from ..dispatch import ElementSchedule

_SHARE = 2  # of what is left, each worker gets one part in so many
_MEMORY = 0.5  # of the running mean: how much the last chunk weighs


class ElementCost:
    """What a batch element of one host function costs, as measured by who ran some."""

    def __init__(self) -> None:
        self.mean_ns: float | None = None
        self.version = 0  # of the host function's body

    def measured(self, elements: int, took_ns: int) -> None:
        """`elements` took so long together."""
        if elements:
            own = max(took_ns, 1) / elements
            known = self.mean_ns
            self.mean_ns = own if known is None else known + _MEMORY * (own - known)

    def chunk(self, left: int, workers: int, target_ns: int) -> int:
        """How many of the elements that are left to send together: enough to be worth it, not more.

        All of them, if together they take no longer than that.
        """
        if self.mean_ns is None:
            return 1
        if self.mean_ns * left <= target_ns:
            return left
        worth = int(target_ns / self.mean_ns)
        return max(1, min(worth, -(-left // (_SHARE * workers))))


_paces: weakref.WeakKeyDictionary[HostFunction, ElementCost] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def element_cost_of(host: HostFunction) -> ElementCost:
    """What is known of the cost of a host function; nothing, of a new body."""
    with _lock:
        pace = _paces.get(host)
        if pace is None:
            pace = _paces[host] = ElementCost()
    if pace.version != host.version:
        pace.mean_ns, pace.version = None, host.version
    return pace


class ChunkQueue:
    """Which calls of a crossing are to be sent next.

    Args:
        count: of calls.
        spread: the options.
        pace: what a call costs.
        workers: that share them.
        target_ns: what calls that are sent together should take, at least.
    """

    def __init__(
        self, count: int, spread: ExecutorOptions, pace: ElementCost, workers: int, target_ns: int
    ) -> None:
        self._count, self._size, self._pace = count, spread.chunksize, pace
        self._workers, self._target_ns = workers, target_ns
        self._next = 0
        self._again: collections.deque[tuple[int, int]] = collections.deque()

    def again(self, start: int, stop: int) -> None:
        """These are to be sent once more, before any others."""
        if start < stop:
            self._again.append((start, stop))

    def one_by_one(self, start: int, stop: int) -> None:
        """As `again`, so that what goes wrong does so for one of them."""
        self._again.extend((call, call + 1) for call in range(start, stop))

    def next(self, before: int | None) -> tuple[int, int] | None:
        """The first call and the one behind the last; None: no more is to be sent.

        Args:
            before: a call that failed; those from there on are not made.
        """
        before = self._count if before is None else before
        while self._again:
            start, stop = self._again.popleft()
            if start < before:
                return start, min(stop, before)
        left = before - self._next
        if left <= 0:
            return None
        size = self._size or self._pace.chunk(left, self._workers, self._target_ns)
        start, self._next = self._next, self._next + min(size, left)
        return start, self._next


class OperandSlices:
    """The operands of one crossing, to be cut into chunks by the numbers of its calls.

    Args:
        operands: as XLA hands them over.
        schedule: which element the n-th call is of; None: there is one call, and no batch element.
        near: only processes of this machine get them.
    """

    def __init__(
        self,
        operands: Sequence[np.ndarray],
        schedule: ElementSchedule | None,
        *,
        near: bool = False,
    ) -> None:
        self._operands = operands
        self._plan = [(0, None)] * len(operands) if schedule is None else schedule.plan
        self._shared = [
            shared_if_large(operand) if near and rows is None else None
            for operand, (_, rows) in zip(operands, self._plan, strict=True)
        ]
        self.count = 1 if schedule is None else schedule.order.size

    def cut(self, start: int, stop: int) -> list[Column]:
        """What the calls from `start` to `stop` get."""
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
