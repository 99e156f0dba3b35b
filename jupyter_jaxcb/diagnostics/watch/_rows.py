"""What a block saw, as rows of numbers in the order of time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..notes import History, Store


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


def rows_of(store: Store) -> list[Row]:
    """Return all rows that `store` keeps, in the order in which they arrived."""
    found = []
    for place, history in enumerate(store.histories()):
        facts = history.facts
        sent = (history.arrivals, history.numbers.tolist(), history.steps.tolist(), history.around)
        for arrival, numbers, steps, around in zip(*sent, strict=True):
            for index, (own, at) in enumerate(zip(numbers, steps, strict=True)):
                if sum(own[3:6]):  # the value of a branch that was not taken has none
                    element = None if facts.is_together else element_of(index, facts.batch)
                    found.append(
                        ((arrival, place, index), _row(history, own, [*around, *at], element))
                    )
    return [row for _, row in sorted(found, key=lambda one: one[0])]


def element_of(index: int, batch: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(index, batch)) if batch else ()


def _row(history: History, numbers: list[float], steps: list[int], element: Any) -> Row:
    facts = history.facts
    total, least, most, nan, inf, finite, *others = numbers
    some = finite > 0
    place = facts.note.place
    name = facts.note.variable
    return Row(
        place.file, place.line, place.function, place.source, name, tuple(steps),
        element, history.shard, facts.note.direction, facts.shape, facts.dtype,
        least if some else math.nan, total / finite if some else math.nan,
        most if some else math.nan, int(nan), int(inf),
        dict(zip([name for name, _ in facts.note.options.reductions], others, strict=False)),
    )  # fmt: skip
