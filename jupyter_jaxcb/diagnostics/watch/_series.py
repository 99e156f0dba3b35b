"""What the values of one variable were, step by step."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections.abc import Iterable

import numpy as np

from ..notes import MOST_ELEMENTS, Facts, History, Totals, merged, totals_of


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


def series_of(histories: Iterable[History]) -> list[Series]:
    """Return the series of all variables, in the order of the lines."""
    found: dict[tuple, list[History]] = {}
    for history in histories:
        if not history.facts.note.rows:
            continue
        facts = history.facts
        note = facts.note
        of = (
            *note.place[:4],
            note.variable,
            note.is_backward,
            facts.shape,
            facts.dtype,
            facts.batch,
        )
        of += (facts.shards,)
        found.setdefault(of, []).append(history)
    ordered = sorted(found.values(), key=_order)
    return [_series(several) for several in ordered]


def _order(several: list[History]) -> tuple:
    note = several[0].facts.note
    return note.place.file, note.place.line, note.is_backward, note.number


def _beside(several: list[History]) -> list[History]:
    """Put the columns of shards beside each other, if all shards made the same steps."""
    by_program: dict[Facts, list[History]] = {}
    for history in several:
        by_program.setdefault(history.facts, []).append(history)
    groups = [sorted(g, key=lambda one: one.shard or 0) for g in by_program.values()]
    lengths = {(len(group), len({len(one.arrivals) for one in group})) for group in groups}
    ((count, different), *others) = lengths
    if count == 1 or different > 1 or others:
        return several
    return [_joined(group) for group in groups]


def _joined(shards: list[History]) -> History:
    numbers = np.concatenate([one.numbers for one in shards], axis=1)
    if numbers.shape[1] > MOST_ELEMENTS:
        total, least, most, *rest = np.moveaxis(numbers, -1, 0)
        counts, own = rest[:3], rest[3 : len(rest) - shards[0].facts.values]
        reduced = [total.sum(1), least.min(1), most.max(1), *(one.sum(1) for one in counts)]
        numbers = np.stack([*reduced, *(one.mean(1) for one in own)], axis=-1)[:, None]
    arrivals = np.max([one.arrivals for one in shards], axis=0)
    dropped = merged(one.dropped for one in shards)
    return dataclasses.replace(shards[0], arrivals=arrivals, numbers=numbers, dropped=dropped)


def numbered(steps: Iterable[tuple[int, ...]]) -> list[tuple[int, tuple[int, ...]]]:
    """Return how often each step came before, and the step: a program may run several times."""
    count: collections.Counter[tuple[int, ...]] = collections.Counter()
    found = []
    for step in steps:
        found.append((count[step], step))
        count[step] += 1
    return found


def _series(several: list[History]) -> Series:
    """Join what several programs and shards computed for one variable, in the order of time."""
    several = _beside(several)
    note, facts = several[0].facts.note, several[0].facts
    when = np.concatenate([history.arrivals for history in several])
    order = np.argsort(when, kind="stable")
    around = list(itertools.chain.from_iterable(h.around for h in several))
    within = list(itertools.chain.from_iterable(h.steps.max(axis=1).tolist() for h in several))
    steps = [(*around[place], *within[place]) for place in order]
    if note.is_backward:  # which runs from the last step to the first
        turned = sorted(range(len(steps)), key=numbered(steps).__getitem__)
        order, steps = order[turned], [steps[place] for place in turned]
    numbers = np.concatenate([h.numbers.astype(np.float64) for h in several])[order]
    depth = max(map(len, steps), default=0)
    total, least, most, nan, inf, finite, *own = np.moveaxis(numbers, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / finite
    names = [name for name, _ in note.options.reductions]
    values = (
        np.moveaxis(np.array(own[len(names) :]), 0, -1)
        if facts.values
        else mean[:, :, None][..., :0]
    )
    return Series(
        *note.place[:4],
        note.variable,
        note.direction,
        facts.shape,
        facts.dtype,
        facts.batch,
        facts.shards,
        sum(history.count for history in several),
        np.array([step + (0,) * (depth - len(step)) for step in steps], np.int64),
        np.where(finite > 0, least, np.nan),
        mean,
        np.where(finite > 0, most, np.nan),
        nan.astype(np.int64),
        inf.astype(np.int64),
        dict(zip(names, own, strict=False)),
        values,
        merged([totals_of(numbers), *(history.dropped for history in several)]),
    )
