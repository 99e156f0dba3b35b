"""The lanes of looped vmaps: in which order they are visited, what each gets, what they answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..recording import LoweredSite


class LaneSchedule:
    """In which order the lanes of looped vmaps are visited, and what each one gets.

    JAX batches a loop over an inner vmap into loops over the outer ones, so the outermost axis
    runs fastest: vmap of vmap over (2, 3) visits 0, 3, 1, 4, 2, 5 of the row-major lanes.
    """

    def __init__(self, lowered: LoweredSite) -> None:
        sizes = [level.size for level in lowered.levels if level.looped]  # innermost vmap first
        batched = [level.batched for level in lowered.levels if level.looped]
        self._axes = len(sizes)
        grid = np.arange(int(np.prod(sizes)), dtype=np.int32).reshape(sizes[::-1])
        self.order: np.ndarray = grid.transpose().reshape(-1)  # lane of the k-th call
        # Per operand: its own batch axes, and the row of them each call gets (None: no axes).
        self._plan: list[tuple[int, np.ndarray | None]] = []
        for operand in range(len(lowered.operands)):
            mapped = [level[operand] for level in batched]
            own = [n if on else 1 for n, on in zip(sizes, mapped, strict=True)][::-1]
            rows = np.arange(int(np.prod(own)), dtype=np.int64).reshape(own)
            rows = np.broadcast_to(rows, grid.shape).transpose().reshape(-1)
            self._plan.append((sum(mapped), rows if any(mapped) else None))

    def lanes(self, operands: Sequence[np.ndarray]) -> Iterator[tuple]:
        """The arguments of every call, in the order of the calls."""
        columns = [
            itertools.repeat(operand) if rows is None else self._column(operand, axes, rows)
            for operand, (axes, rows) in zip(operands, self._plan, strict=True)
        ]
        return zip(*columns, strict=False)

    def _column(self, operand: np.ndarray, axes: int, rows: np.ndarray) -> Iterator[np.ndarray]:
        """One operand's argument of every call: arrays, scalars too, as unbatched calls get."""
        inner = operand.shape[axes:]
        if axes > 1:
            operand = operand.reshape((int(np.prod(operand.shape[:axes])), *inner))
        if axes < self._axes:  # rows repeat: indexing copies nothing, but costs more a lane
            return map(operand.__getitem__, zip(rows.tolist(), itertools.repeat(...), strict=False))
        if axes > 1:
            operand = operand[rows]
            operand.flags.writeable = False
        if inner:
            return iter(operand)
        scalars: Any = np.nditer(operand, flags=["zerosize_ok"], order="C")
        return scalars

    def by_lane(self, called: np.ndarray) -> np.ndarray:
        """Rows in the order of the calls, put in the order of the lanes."""
        if self._axes == 1:
            return called
        placed = np.empty_like(called)
        placed[self.order] = called
        return placed


def stack_answers(
    answers: list[Any],
    check: Callable[[Any], tuple[np.ndarray, ...]],
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[np.dtype],
) -> list[np.ndarray]:
    """The answers of all lanes, stacked: one array a result, one row a call.

    Args:
        answers: of the host function, in the order of the calls.
        check: see `_contract.answer_checker`.
        shapes: of the results of one call.
        dtypes: of the results.

    Raises:
        LaneError: an answer broke the contract.
    """
    if len(shapes) == 1 and _are_exact(answers, shapes[0], dtypes[0]):
        try:
            joined = np.frombuffer(b"".join(answers), dtypes[0])
            return [joined.reshape((len(answers), *shapes[0]))]
        except ValueError:  # strided arrays, and dtypes that have no buffer (bfloat16)
            pass
    stacked = [
        np.empty((len(answers), *shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    for call, answer in enumerate(answers):
        try:
            arrays = check(answer)
        except BaseException as error:
            raise LaneError(call, error) from None
        for column, array in zip(stacked, arrays, strict=True):
            column[call] = array
    return stacked


def _are_exact(answers: list[Any], shape: tuple[int, ...], dtype: np.dtype) -> bool:
    """Whether every answer is an array, or every one a numpy scalar, exactly as declared."""
    types = set(map(type, answers))
    if types == {dtype.type} and shape == ():
        return True
    return (
        types == {np.ndarray}
        and [answer.dtype for answer in answers].count(dtype) == len(answers)
        and [answer.shape for answer in answers].count(shape) == len(answers)
    )


class LaneError(Exception):
    """What the answer of one lane raised; `call` counts the calls of the crossing."""

    def __init__(self, call: int, error: BaseException) -> None:
        super().__init__(call, error)
        self.call = call
        self.error = error
