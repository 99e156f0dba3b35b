"""What a block saw: rows of numbers in the order of time, and each variable step by step."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...recording import cell_number
from ..notes import MOST_ELEMENTS, Facts, History, Totals, merged, totals_of


class Row(NamedTuple):
    """The numbers of one value, in one step and batch element.

    Attributes:
        file: the file of the user's code, or the name of the cell.
        line: its line.
        function: the function that the line is in.
        source: the line.
        expression: the variable; of a result that is returned, the function with ``()``.
        steps: of each loop around it, outermost first, from 0; empty outside loops.
        element: the index of the batch element at each vmap, outermost first; empty without vmap,
            and None if the row is that of all elements together, because there are many.
        shard: the device in a ``shard_map``, whose shard the value belongs to; None elsewhere.
        direction: "forward", or "backward" for the cotangent of the expression.
        shape: of one batch element.
        dtype: its name.
        min: the least finite value; NaN if none is finite, as for `mean` and `max`. Of complex
            values it is the absolute value that counts.
        mean: the mean of the finite values.
        max: the largest finite value.
        nan: how many values are NaN.
        inf: how many are infinite.
        own: the numbers of the user's own reductions, by name.
    """

    file: str
    line: int
    function: str
    source: str
    expression: str
    steps: tuple[int, ...]
    element: tuple[int, ...] | None
    shard: int | None
    direction: str
    shape: tuple[int, ...]
    dtype: str
    min: float
    mean: float
    max: float
    nan: int
    inf: int
    own: dict[str, float]


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """The numbers of one variable at each step that is kept.

    Attributes:
        file: the file of the user's code, or the name of the cell.
        line: its line.
        function: the function that the line is in.
        source: the line.
        name: the variable, such as ``loss`` or ``grads['w']``; of a result that is returned, the
            function with ``()``.
        direction: "forward", or "backward" for the cotangent of the variable.
        shape: of one batch element.
        dtype: its name.
        batch: the sizes of the vmaps around, outermost first.
        shards: how many devices computed it, each on its shard; 1 outside of ``shard_map``.
        count: how many times it was computed; more than are kept in a long run.
        steps: the step of each loop around, outermost first, one row for each of the `n` kept, in
            the order of time; of a cotangent in that of the steps.
        min: the least finite value, of shape ``(n, elements)``; NaN if none is finite, as for
            `mean` and `max`. Of complex values it is the absolute value that counts. A batch of
            more than 16 has one column for all elements. Of several shards, each has its columns,
            one shard after another; there is one column for all if they are more than 16.
        mean: the mean of the finite values.
        max: the largest finite value.
        nan: how many values are NaN.
        inf: how many are infinite.
        own: for each reduction of the user, its numbers.
        values: the values themselves, if the array has 2 to 8 and no vmap is around it, of shape
            ``(n, elements, values)``; else of size 0. Of complex values, the absolute ones.
        totals: the least and the largest finite value, and how many are NaN and infinite, in all
            steps, also in those that are not kept: ``totals.min``, `max`, `nan` and `inf`.
    """

    file: str
    line: int
    function: str
    source: str
    name: str
    direction: str
    shape: tuple[int, ...]
    dtype: str
    batch: tuple[int, ...]
    shards: int
    count: int
    steps: np.ndarray
    min: np.ndarray
    mean: np.ndarray
    max: np.ndarray
    nan: np.ndarray
    inf: np.ndarray
    own: dict[str, np.ndarray]
    values: np.ndarray
    totals: Totals

    @property
    def is_scalar(self) -> bool:
        """Whether the value of one element is a single number."""
        return math.prod(self.shape) == 1


def element_of(index: int, batch: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index at each vmap of a batch element."""
    return tuple(int(i) for i in np.unravel_index(index, batch)) if batch else ()


def rows_of(histories: Iterable[History]) -> list[Row]:
    """Return all rows that are kept, in the order in which they arrived."""
    rows = []
    for place, history in enumerate(histories):
        facts, note = history.facts, history.facts.note
        names = [name for name, _ in note.options.reductions]
        sent = (history.arrivals, history.numbers.tolist(), history.steps.tolist(), history.around)
        for arrival, numbers, steps, around in zip(*sent, strict=True):
            for index, (own, at) in enumerate(zip(numbers, steps, strict=True)):
                total, least, most, nan, inf, finite, *others = own
                if not nan and not inf and not finite:  # of a branch that was not taken
                    continue
                element = None if facts.is_together else element_of(index, facts.batch)
                if not finite:
                    total, finite, least, most = (math.nan,) * 4
                row = Row(
                    *note.place[:4], note.variable, (*around, *at), element, history.shard,
                    note.direction, facts.shape, facts.dtype, least, total / finite, most,
                    int(nan), int(inf),
                    dict(zip(names, others, strict=False)),
                )  # fmt: skip
                rows.append(((arrival, place, index), row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def series_of(histories: Iterable[History]) -> list[Series]:
    """Return the series of all variables, in the order of the lines."""
    groups: dict[tuple, list[History]] = {}
    for history in histories:
        facts, note = history.facts, history.facts.note
        if note.rows:
            of = *note.place[:4], note.variable, note.is_backward
            of += facts.shape, facts.dtype, facts.batch, facts.shards
            groups.setdefault(of, []).append(history)

    def order(group: list[History]) -> tuple:
        note = group[0].facts.note
        file = note.place.file
        return cell_number(file), file, note.place.line, note.is_backward, note.number

    return [_series(group) for group in sorted(groups.values(), key=order)]


def numbered(steps: Iterable[tuple[int, ...]]) -> list[tuple[int, tuple[int, ...]]]:
    """Return how often each step came before, and the step: a program may run several times."""
    count: collections.Counter[tuple[int, ...]] = collections.Counter()
    pairs = []
    for step in steps:
        pairs.append((count[step], step))
        count[step] += 1
    return pairs


def _series(group: Sequence[History]) -> Series:
    """Join what several programs and shards computed for one variable, in the order of time."""
    group = _beside(group)
    note, facts = group[0].facts.note, group[0].facts
    order = np.argsort(np.concatenate([history.arrivals for history in group]), kind="stable")
    around = [iterations for history in group for iterations in history.around]
    within = [steps for history in group for steps in history.steps.max(axis=1).tolist()]
    steps = [(*around[place], *within[place]) for place in order]
    if note.is_backward:  # which runs from the last step to the first
        turned = sorted(range(len(steps)), key=numbered(steps).__getitem__)
        order, steps = order[turned], [steps[place] for place in turned]
    numbers = np.concatenate([history.numbers.astype(np.float64) for history in group])[order]
    depth = max(map(len, steps), default=0)
    names = [name for name, _ in note.options.reductions]
    total, least, most, nan, inf, finite, *own = np.moveaxis(numbers, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / finite
    return Series(
        *note.place[:4], note.variable, note.direction, facts.shape, facts.dtype, facts.batch,
        facts.shards, sum(history.count for history in group),
        np.array([step + (0,) * (depth - len(step)) for step in steps], np.int64),
        np.where(finite > 0, least, np.nan), mean, np.where(finite > 0, most, np.nan),
        nan.astype(np.int64), inf.astype(np.int64), dict(zip(names, own, strict=False)),
        numbers[..., 6 + len(names) :], merged([totals_of(numbers), *(h.dropped for h in group)]),
    )  # fmt: skip


def _beside(group: Sequence[History]) -> Sequence[History]:
    """Put the columns of shards beside each other, if all shards made the same steps."""
    programs: dict[Facts, list[History]] = {}
    for history in group:
        programs.setdefault(history.facts, []).append(history)
    if len({len(shards) for shards in programs.values()}) > 1 or len(programs) == len(group):
        return group
    if any(len({len(each.arrivals) for each in shards}) > 1 for shards in programs.values()):
        return group
    joined = []
    for shards in programs.values():
        shards.sort(key=lambda history: history.shard or 0)
        numbers = np.concatenate([each.numbers for each in shards], axis=1)
        if numbers.shape[1] > MOST_ELEMENTS:
            total, least, most, *rest = np.moveaxis(numbers, -1, 0)
            counts, own = rest[:3], rest[3 : len(rest) - shards[0].facts.values]
            reduced = [total.sum(1), least.min(1), most.max(1), *(each.sum(1) for each in counts)]
            numbers = np.stack([*reduced, *(each.mean(1) for each in own)], axis=-1)[:, None]
        arrivals = np.max([each.arrivals for each in shards], axis=0)
        dropped = merged(each.dropped for each in shards)
        joined.append(
            dataclasses.replace(shards[0], arrivals=arrivals, numbers=numbers, dropped=dropped)
        )
    return joined
