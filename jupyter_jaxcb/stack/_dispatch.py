"""One crossing: arrays in, host function, contract, arrays out, record, error.

This is the path of every host call. It never calls JAX on arrays, holds no lock while user
code runs, and keeps no reference to what passes through.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.tree_util import tree_structure, tree_unflatten

from ..recording import LoweredSite, active
from ._callback import HostCallback
from ._contract import answer_checker
from ._errors import explain

Crossing = Callable[..., tuple[np.ndarray, ...]]


def build_crossing(
    callback: HostCallback, lowered: LoweredSite, dtypes: Sequence[Any]
) -> Crossing:
    """The function XLA calls: numpy arrays in, a tuple of numpy arrays out.

    Args:
        callback: the host function and its trees.
        lowered: the site this is the crossing of; host calls are recorded under it.
        dtypes: of the results, as numpy dtypes.
    """
    _, results = lowered.host_avals()
    check = answer_checker(
        callback.host.name, callback.out_tree, [aval.shape for aval in results], dtypes
    )
    if lowered.lanes is None:
        return _single(callback, lowered, check)
    return _looped(callback, lowered, check, dtypes)


def _single(callback: HostCallback, lowered: LoweredSite, check: Callable) -> Crossing:
    host = callback.host
    call = _calling(callback, len(lowered.operands))

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        recorder = active()
        if recorder is None:
            try:
                return check(call(host.current, operands))
            except BaseException as error:
                raise explain(error, lowered, None) from None
        version = host.version
        start = recorder.clock()
        try:
            answer = call(host.current, operands)
            end = recorder.clock()
            arrays = check(answer)
        except BaseException as error:
            recorder.called(lowered, version, start, recorder.clock(), _describe(error))
            raise explain(error, lowered, None) from None
        recorder.called(lowered, version, start, end)
        return arrays

    return cross


def _looped(
    callback: HostCallback, lowered: LoweredSite, check: Callable, dtypes: Sequence[Any]
) -> Crossing:
    host = callback.host
    call = _calling(callback, len(lowered.operands))
    schedule = LaneSchedule(lowered)
    shapes = [aval.shape for aval in lowered.results]
    store = _storing(len(shapes))

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        recorder = active()
        clock = recorder.clock if recorder else None
        version = host.version
        out = [np.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
        flat = [schedule.by_lane(array) for array in out]
        stamps = [clock()] if clock else []
        lane = -1
        try:
            if clock:
                for lane, arguments in schedule.lanes(operands):
                    answer = call(host.current, arguments)
                    stamps.append(clock())
                    store(flat, lane, check(answer))
            else:
                for lane, arguments in schedule.lanes(operands):
                    store(flat, lane, check(call(host.current, arguments)))
        except BaseException as error:
            if recorder:
                if len(stamps) <= schedule.position(lane) + 1:
                    stamps.append(recorder.clock())
                recorder.called_lanes(lowered, version, schedule.order, stamps, _describe(error))
            raise explain(error, lowered, lane) from None
        if recorder and len(stamps) > 1:
            recorder.called_lanes(lowered, version, schedule.order, stamps)
        return tuple(out)

    return cross


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
        self._plan: list[tuple[int, np.ndarray | None]] = []  # per operand: axes, row per call
        for operand in range(len(lowered.operands)):
            mapped = [level[operand] for level in batched]
            own = tuple(n for n, on in zip(sizes, mapped, strict=True) if on)[::-1]
            index = np.arange(int(np.prod(own)), dtype=np.int64).reshape(
                [n if on else 1 for n, on in zip(sizes, mapped, strict=True)][::-1]
            )
            index = np.broadcast_to(index, grid.shape).transpose().reshape(-1)
            self._plan.append((len(own), index if own else None))

    def by_lane(self, array: np.ndarray) -> np.ndarray:
        """`array` with its looped axes made one; row `lane` belongs to that lane."""
        return array.reshape((self.order.size, *array.shape[self._axes :]))

    def position(self, lane: int) -> int:
        """Which call in order visited `lane`; -1 for no lane."""
        return -1 if lane < 0 else int(np.flatnonzero(self.order == lane)[0])

    def lanes(self, operands: Sequence[np.ndarray]) -> Iterator[tuple[int, tuple]]:
        """(lane, arguments of its call), in the order of the calls."""
        columns: list[Iterator[Any]] = []
        for operand, (axes, index) in zip(operands, self._plan, strict=True):
            if index is None:
                columns.append(itertools.repeat(operand))
            else:
                count = int(np.prod(operand.shape[:axes]))
                rows = operand.reshape((count, *operand.shape[axes:])) if axes > 1 else operand
                # The ellipsis keeps scalars arrays, as an unbatched call gets them.
                where = zip(index.tolist(), itertools.repeat(...), strict=False)
                columns.append(map(rows.__getitem__, where))
        return zip(self.order.tolist(), zip(*columns, strict=False), strict=False)


def _calling(callback: HostCallback, count: int) -> Callable[[Callable, tuple], Any]:
    """How flat operands become the arguments of the host function."""
    in_tree = callback.in_tree
    static = callback.static.values
    if not static and in_tree == tree_structure(((0,) * count, {})):
        return lambda function, operands: function(*operands)

    def call(function: Callable, operands: tuple) -> Any:
        args, kwargs = tree_unflatten(in_tree, operands)
        return function(*args, **kwargs)

    def call_with_static(function: Callable, operands: tuple) -> Any:
        leaves = iter(operands)
        places = range(in_tree.num_leaves)
        return call(function, tuple(static[i] if i in static else next(leaves) for i in places))

    return call_with_static if static else call


def _storing(results: int) -> Callable[[list[np.ndarray], int, tuple], None]:
    if results == 1:

        def store_one(out: list[np.ndarray], lane: int, arrays: tuple) -> None:
            out[0][lane] = arrays[0]

        return store_one

    def store(out: list[np.ndarray], lane: int, arrays: tuple) -> None:
        for column, array in zip(out, arrays, strict=True):
            column[lane] = array

    return store


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
