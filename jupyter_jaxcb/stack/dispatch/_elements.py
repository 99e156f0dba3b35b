"""The batch elements of looped vmaps: their order, their operands and their results."""

from __future__ import annotations

import abc
import io
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...recording import LoweredSite
from ..results import ResultChecker


class Selection:
    """The batch elements for which one crossing makes host calls, together or one by one.

    Attributes:
        size: how many batch elements.
        site: a site with the avals of one call.
        numbers: their row-major numbers, in the order in which they are passed or called.
    """

    size: int
    site: LoweredSite
    numbers: np.ndarray

    def gather(self, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the operands of the calls, given those of all batch elements."""
        return operands

    def scatter(self, results: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Put the results of the calls where they belong; the others are zero."""
        return tuple(results)

    def outputs(self, outs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the memory that the calls write to, given that of all results."""
        return outs

    def keep(self, written: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        """Put what the calls wrote to `outputs` where it belongs, if it is not there."""


class Elements(Selection, abc.ABC):
    """Batch elements in the order of their calls, and where the operands of each are.

    Attributes:
        order: the batch element of each call.
        plan: for each operand its number of batch axes, and its row for each call; None: all calls
            get the whole operand.
    """

    order: np.ndarray
    plan: list[tuple[int, np.ndarray | None]]

    @property
    def numbers(self) -> np.ndarray:  # type: ignore[override]
        """The batch element of each call."""
        return self.order

    def elements(self, operands: Sequence[np.ndarray]) -> Iterator[tuple]:
        """Yield the arguments of every call, in call order."""
        count = self.order.size
        if not self.plan:
            return itertools.repeat((), count)
        columns = [
            itertools.repeat(operand, count) if rows is None else self._column(operand, axes, rows)
            for operand, (axes, rows) in zip(operands, self.plan, strict=True)
        ]
        return zip(*columns, strict=False)

    def numbered(self, operands: Sequence[np.ndarray]) -> Iterator[tuple[int, tuple]]:
        """Yield the number of each batch element and its arguments, in call order."""
        return zip(self.order.tolist(), self.elements(operands), strict=False)

    def arguments(self, operands: Sequence[np.ndarray], place: int) -> tuple:
        """Return the arguments of the call at a place in call order; none after the last."""
        return next(itertools.islice(self.elements(operands), place, None), ())

    def _column(self, operand: np.ndarray, axes: int, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yield one operand's argument of every call, always as an array, even for scalars."""
        inner = operand.shape[axes:]
        flat = operand.reshape((math.prod(operand.shape[:axes]), *inner))
        if inner:
            return map(flat.__getitem__, rows.tolist())
        scalars: Any = np.nditer(flat[rows], flags=["zerosize_ok"], order="C")
        return scalars

    @abc.abstractmethod
    def by_element(self, called: np.ndarray) -> np.ndarray:
        """Reorder rows from call order to batch element order."""

    def by_call(self, by_element: np.ndarray) -> np.ndarray:
        """Reorder rows from batch element order to call order."""
        return by_element[self.order]


class ElementSchedule(Elements):
    """The order in which looped vmaps visit their batch elements, and the operands of each.

    JAX turns the inner vmap into a loop first, and batching that loop puts the loop of the outer
    vmap inside it. So the outermost axis runs fastest: vmap of vmap over (2, 3) visits the
    row-major batch elements 0, 3, 1, 4, 2, 5.
    """

    def __init__(self, lowered: LoweredSite) -> None:
        sizes = [level.size for level in lowered.levels if level.looped]  # innermost vmap first
        batched = [level.batched for level in lowered.levels if level.looped]
        self._axes = len(sizes)
        grid = np.arange(int(np.prod(sizes)), dtype=np.int32).reshape(sizes[::-1])
        self.order = grid.transpose().reshape(-1)
        self.size, self.site = grid.size, lowered
        self.plan = []
        for operand in range(len(lowered.operands)):
            is_batched = [level[operand] for level in batched]
            own = [n if on else 1 for n, on in zip(sizes, is_batched, strict=True)][::-1]
            rows = np.arange(int(np.prod(own)), dtype=np.int64).reshape(own)
            rows = np.broadcast_to(rows, grid.shape).transpose().reshape(-1)
            self.plan.append((sum(is_batched), rows if any(is_batched) else None))

    def _column(self, operand: np.ndarray, axes: int, rows: np.ndarray) -> Iterator[np.ndarray]:
        # Views are faster than rows by number.
        inner = operand.shape[axes:]
        if axes > 1:
            operand = operand.reshape((int(np.prod(operand.shape[:axes])), *inner))
        if axes < self._axes:  # rows repeat: indexing copies nothing, but costs more per element
            return map(operand.__getitem__, zip(rows.tolist(), itertools.repeat(...), strict=False))
        if axes > 1:
            operand = operand[rows]
            operand.flags.writeable = False
        if inner:
            return iter(operand)
        scalars: Any = np.nditer(operand, flags=["zerosize_ok"], order="C")
        return scalars

    def by_element(self, called: np.ndarray) -> np.ndarray:
        if self._axes == 1:
            return called
        placed = np.empty_like(called)
        placed[self.order] = called
        return placed

    def by_call(self, by_element: np.ndarray) -> np.ndarray:
        return by_element if self._axes == 1 else super().by_call(by_element)


class CollectedResults:
    """The results of the calls of one crossing, checked and copied as each call returns.

    They are copied immediately, because a host function may return the same buffer every time.
    """

    def __init__(
        self,
        count: int,
        check: ResultChecker,
        shapes: Sequence[tuple[int, ...]],
        dtypes: Sequence[np.dtype],
    ) -> None:
        self._done = 0
        self._count = count
        self._check = check
        self._shapes = shapes
        self._dtypes = dtypes
        self._stacked: list[np.ndarray] = []
        self._numbers = io.BytesIO()
        self._number_bytes = dtypes[0].itemsize or 1 if dtypes else 1

    @property
    def done(self) -> int:
        """The number of calls that have returned a result as declared."""
        return self._done or self._numbers.tell() // self._number_bytes

    def so_far(self) -> list[np.ndarray]:
        """Return the results of the calls done so far, stacked as by `stack`."""
        if self._stacked:
            return [column[: self.done] for column in self._stacked]
        return [np.frombuffer(self._numbers.getvalue(), dtype) for dtype in self._dtypes]

    def stack(self, calls: Iterator[Any]) -> list[np.ndarray]:
        """Make all `calls`; return one array per result, with one row per call, in call order."""
        if self._shapes == [()] and self._dtypes[0].kind in "biufc":
            return [self._stack_numbers(calls, self._dtypes[0])]
        stacked = self._stacked = [
            np.empty((self._count, *shape), dtype)
            for shape, dtype in zip(self._shapes, self._dtypes, strict=True)
        ]
        for returned in calls:
            for column, array in zip(stacked, self._check(returned), strict=True):
                column[self._done] = array
            self._done += 1
        return stacked

    def _stack_numbers(self, calls: Iterator[Any], dtype: np.dtype) -> np.ndarray:
        """Stack results that are single numbers, the most common kind, in a tight loop."""
        check, ndarray, number, shape = self._check, np.ndarray, dtype.type, ()
        numbers = self._numbers
        write: Callable[[Any], int] = numbers.write
        for returned in calls:
            kind = type(returned)
            if kind is number or (
                kind is ndarray and returned.dtype is dtype and returned.shape == shape
            ):
                write(returned)
            else:
                write(check(returned)[0])
        return np.frombuffer(numbers.getvalue(), dtype)  # not copied
