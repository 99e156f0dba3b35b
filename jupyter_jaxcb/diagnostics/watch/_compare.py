"""Compare what two blocks saw: which variables differ, and from which step on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...stack.trace import is_cell
from ._series import Series, element_of, numbered
from ._text import cells, label, place, title

_MOST = 20  # sentences


class Difference(NamedTuple):
    """A variable that differs; as text, one sentence.

    Attributes:
        name: the variable, with "(cotangent)" if it is that of one.
        function: the function that it is in.
        steps: of each loop around it, outermost first, where it differs first; None if the blocks
            have no step of it in common.
        sentence: what differs.
    """

    name: str
    function: str
    steps: tuple[int, ...] | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What differs between two blocks; as text, a sentence for each variable.

    Attributes:
        differences: in the order of the lines; empty if everything is equal.
        compared: how many variables both blocks have.
    """

    differences: tuple[Difference, ...]
    compared: int

    def __str__(self) -> str:
        if not self.differences:
            return f"no difference in {self.compared:,} variable{'s' * (self.compared != 1)}"
        sentences = [str(difference) for difference in self.differences[:_MOST]]
        more = len(self.differences) - _MOST
        return "\n".join([*sentences, *([f"and {more:,} more differ"] if more > 0 else [])])


def compare(now: Sequence[Series], before: Sequence[Series], rtol: float) -> Comparison:
    """Compare variables by file, function, name and direction: lines may have moved.

    Raises:
        ValueError: `rtol` is no number from 0 to below 1.
    """
    if not isinstance(rtol, (int, float)) or not 0 <= rtol < 1:
        raise ValueError(f"rtol={rtol!r} is no relative difference. Pass a number such as 1e-5.")
    news, olds = _by_name(now), _by_name(before)
    differences, compared = [], 0
    for key in [*news, *(key for key in olds if key not in news)]:
        new, old = news.get(key, []), olds.get(key, [])
        if len(new) == len(old):
            compared += len(new)
            for pair in zip(new, old, strict=True):
                differences += _differences(*pair, rtol)
        elif not old:
            differences += [_difference(series, "is only in this run") for series in new]
        elif not new:
            differences += [_difference(series, "is only in the earlier run") for series in old]
        else:
            rows = f"{len(new)} row{'s' * (len(new) != 1)}"
            words = f"has {rows}, had {len(old)}, so it is not compared"
            differences.append(_difference(new[0], words))
    return Comparison(tuple(differences), compared)


def _by_name(all_series: Sequence[Series]) -> dict[tuple, list[Series]]:
    groups: dict[tuple, list[Series]] = {}
    for series in all_series:
        # The name of a cell changes with its source.
        file = "" if is_cell(series.file) else label(series.file)
        key = file, series.function, series.name, series.direction
        groups.setdefault(key, []).append(series)
    return groups


def _difference(series: Series, words: str, steps: tuple[int, ...] | None = None) -> Difference:
    name = title(series)
    sentence = f"{place(series.file, series.line, series.function)}: {name} {words}"
    return Difference(name, series.function, steps, sentence)


def _differences(now: Series, before: Series, rtol: float) -> Iterator[Difference]:
    shape, was = cells(now)[2], cells(before)[2]
    if shape != was:
        yield _difference(now, f"is {shape}, was {was}")
        return
    places, others = (
        {key: place for place, key in enumerate(numbered(map(tuple, series.steps.tolist())))}
        for series in (now, before)
    )
    common = [key for key in places if key in others]
    if not common:
        yield _difference(now, "has no step in common with the earlier run")
        return
    own = [name for name in now.own if name in before.own]
    a = _numbers(now, own)[[places[key] for key in common]]
    b = _numbers(before, own)[[others[key] for key in common]]
    differs = ~np.isclose(a, b, rtol=rtol, atol=0, equal_nan=True)
    where = np.flatnonzero(differs.any(axis=(1, 2)))
    if len(where):
        first = int(where[0])
        _, steps = common[first]
        element, field = np.argwhere(differs[first])[0]
        names = [f"value {place}" for place in range(now.values.shape[-1])]
        what = ("mean", "min", "max", "NaN", "inf", *own, *names)[field] + " "
        if what == "mean " and now.is_scalar:
            what = ""
        values = _values(a[first, element, field], b[first, element, field])
        which = ""
        if a.shape[1] > 1:
            which = f" in batch element {element_of(int(element), now.batch)}"
        words = f"differs{_steps(steps, where, len(common))}{which}: {what}{values}"
        yield _difference(now, words, steps)
    elif now.count != before.count:
        yield _difference(now, f"is equal, but has {now.count:,} steps, had {before.count:,}")


def _numbers(series: Series, own: Sequence[str]) -> np.ndarray:
    """Return the numbers of each step and batch element, those in `own`, and the values."""
    numbers = [series.mean, series.min, series.max, series.nan, series.inf]
    numbers += [series.own[name] for name in own]
    return np.concatenate([np.stack(numbers, axis=-1), series.values], axis=-1)


def _steps(steps: tuple[int, ...], where: np.ndarray, count: int) -> str:
    if not steps:
        return "" if len(where) == count else f" in {len(where):,} of {count:,} runs"
    first = f"step {', '.join(map(str, steps))}"
    if len(where) == 1:
        return f" in {first}"
    if len(where) == count - where[0]:
        return f" from {first} on"
    return f" in {len(where):,} of {count:,} steps, first in {first}"


def _values(now: float, before: float) -> str:
    new, old = f"{now:.4g}", f"{before:.4g}"
    if new == old:
        new, old = f"{now:.9g}", f"{before:.9g}"
    return f"{new}, was {old}".replace("nan", "not finite")
