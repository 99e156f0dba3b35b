"""The elements of looped vmaps: in which order they are visited, what each gets, what they answer."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...recording import LoweredSite
from ..results import ResultChecker


class ElementSchedule:
    """In which order the batch elements of looped vmaps are visited, and what each one gets.

    JAX batches a loop over an inner vmap into loops over the outer ones, so the outermost axis
    runs fastest: vmap of vmap over (2, 3) visits 0, 3, 1, 4, 2, 5 of the row-major batch elements.
    """

    def __init__(self, lowered: LoweredSite) -> None:
        sizes = [level.size for level in lowered.levels if level.looped]  # innermost vmap first
        batched = [level.batched for level in lowered.levels if level.looped]
        self._axes = len(sizes)
        grid = np.arange(int(np.prod(sizes)), dtype=np.int32).reshape(sizes[::-1])
        self.order: np.ndarray = grid.transpose().reshape(-1)  # batch element of the k-th call
        # Per operand: how many batch axes it has, and the row of them each call gets (None: none).
        self.plan: list[tuple[int, np.ndarray | None]] = []
        for operand in range(len(lowered.operands)):
            mapped = [level[operand] for level in batched]
            own = [n if on else 1 for n, on in zip(sizes, mapped, strict=True)][::-1]
            rows = np.arange(int(np.prod(own)), dtype=np.int64).reshape(own)
            rows = np.broadcast_to(rows, grid.shape).transpose().reshape(-1)
            self.plan.append((sum(mapped), rows if any(mapped) else None))

    def elements(self, operands: Sequence[np.ndarray]) -> Iterator[tuple]:
        """The arguments of every call, in the order of the calls."""
        columns = [
            itertools.repeat(operand) if rows is None else self._column(operand, axes, rows)
            for operand, (axes, rows) in zip(operands, self.plan, strict=True)
        ]
        return zip(*columns, strict=False)

    def numbered(self, operands: Sequence[np.ndarray]) -> Iterator[tuple[int, tuple]]:
        """The number of each batch element and its arguments, in the order of the calls."""
        return zip(self.order.tolist(), self.elements(operands), strict=False)

    def _column(self, operand: np.ndarray, axes: int, rows: np.ndarray) -> Iterator[np.ndarray]:
        """One operand's argument of every call: arrays, scalars too, as unbatched calls get."""
        inner = operand.shape[axes:]
        if axes > 1:
            operand = operand.reshape((int(np.prod(operand.shape[:axes])), *inner))
        if (
            axes < self._axes
        ):  # rows repeat: indexing copies nothing, but costs more a batch element
            return map(operand.__getitem__, zip(rows.tolist(), itertools.repeat(...), strict=False))
        if axes > 1:
            operand = operand[rows]
            operand.flags.writeable = False
        if inner:
            return iter(operand)
        scalars: Any = np.nditer(operand, flags=["zerosize_ok"], order="C")
        return scalars

    def by_element(self, called: np.ndarray) -> np.ndarray:
        """Rows in the order of the calls, put in the order of the batch elements."""
        if self._axes == 1:
            return called
        placed = np.empty_like(called)
        placed[self.order] = called
        return placed

    def by_call(self, by_element: np.ndarray) -> np.ndarray:
        """Rows in the order of the batch elements, put in the order of the calls."""
        return by_element if self._axes == 1 else by_element[self.order]


class Answers:
    """What the calls of one crossing answer: checked and copied one by one, as they come.

    Copied at once, because a host function may answer with one buffer again and again.

    Attributes:
        done: how many calls have been made and answered as declared.
    """

    def __init__(
        self,
        count: int,
        check: ResultChecker,
        shapes: Sequence[tuple[int, ...]],
        dtypes: Sequence[np.dtype],
    ) -> None:
        self.done = 0
        self._count = count
        self._check = check
        self._shapes = shapes
        self._dtypes = dtypes
        self._stacked: list[np.ndarray] = []
        self._numbers = io.BytesIO()

    def so_far(self) -> list[np.ndarray]:
        """The answers of the calls that are done, as `stack` has them."""
        if self._stacked:
            return [column[: self.done] for column in self._stacked]
        return [np.frombuffer(self._numbers.getvalue(), dtype) for dtype in self._dtypes]

    def stack(self, calls: Iterator[Any]) -> list[np.ndarray]:
        """Makes all `calls`; one array a result, one row a call, in the order of the calls."""
        if self._shapes == [()] and self._dtypes[0].kind in "biufc":
            return [self._stack_numbers(calls, self._dtypes[0])]
        stacked = self._stacked = [
            np.empty((self._count, *shape), dtype)
            for shape, dtype in zip(self._shapes, self._dtypes, strict=True)
        ]
        for answer in calls:
            for column, array in zip(stacked, self._check(answer), strict=True):
                column[self.done] = array
            self.done += 1
        return stacked

    def _stack_numbers(self, calls: Iterator[Any], dtype: np.dtype) -> np.ndarray:
        """One number a call, the commonest answer: as fast as Python's own loop."""
        check, ndarray, number, shape = self._check, np.ndarray, dtype.type, ()
        buffer = self._numbers
        write: Callable[[Any], int] = buffer.write
        try:
            for answer in calls:
                kind = type(answer)
                if kind is number or (
                    kind is ndarray and answer.dtype is dtype and answer.shape == shape
                ):
                    write(answer)
                else:
                    write(check(answer)[0])
        finally:
            self.done = buffer.tell() // dtype.itemsize
        return np.frombuffer(buffer.getbuffer(), dtype)
