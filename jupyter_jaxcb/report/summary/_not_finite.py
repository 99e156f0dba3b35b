"""Count the calls of a site that returned NaN or infinity, and find the first one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...recording import LARGEST_CHECKED
from ._counts import Counts


class NotFiniteCalls(NamedTuple):
    """The calls of a site that returned NaN or infinity, whatever their arguments were."""

    calls: int = 0
    first: int = 0  # among the calls of the site, from 1; 0: unknown, or calls run in parallel
    at_least: bool = False  # not every result was checked
    infinite: int = 0  # those that returned infinity, but no NaN

    def plus(self, earlier: NotFiniteCalls, calls: int) -> NotFiniteCalls:
        """Add those of earlier runs, in which the site made so many `calls`."""
        first = earlier.first if earlier.calls else self.first and self.first + calls
        return NotFiniteCalls(
            earlier.calls + self.calls,
            first,
            earlier.at_least or self.at_least,
            earlier.infinite + self.infinite,
        )


NO_NOT_FINITE = NotFiniteCalls()


def not_finite_calls(counts: Counts, numbers: Sequence[int]) -> NotFiniteCalls:
    """Return the calls of a site with these indices into `Recording.lowered`."""
    recording = counts.recording
    facts = [one for one in recording.not_finite if one.lowered in numbers]
    if not facts:
        return NO_NOT_FINITE
    lowered = [recording.lowered[number] for number in numbers]
    sizes = [
        math.prod(aval.shape)
        for fact in lowered
        if not any(level.looped for level in fact.levels)  # those are checked as a whole
        for aval in fact.results
    ]
    in_parallel = any(fact.shard is not None for fact in lowered) or any(
        counts.elsewhere[number] for number in numbers
    )
    return NotFiniteCalls(
        sum(one.produced + one.passed_on for one in facts),
        0 if in_parallel else _first(counts, numbers),
        max(sizes, default=0) > LARGEST_CHECKED,
        sum(one.infinite for one in facts),
    )


def _first(counts: Counts, numbers: Sequence[int]) -> int:
    recording = counts.recording
    calls = recording.calls[np.isin(recording.calls["lowered"], numbers)]
    calls = calls[np.argsort(calls["start_ns"], kind="stable")]
    marked = {
        (one.crossing, one.element) for one in recording.not_finite_calls if one.lowered in numbers
    }
    keys = zip(calls["crossing"].tolist(), calls["element"].tolist(), strict=True)
    return next((place for place, key in enumerate(keys, 1) if key in marked), 0)
