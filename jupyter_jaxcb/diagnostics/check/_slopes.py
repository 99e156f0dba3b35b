"""Slopes by differences, at several scales; what they can be held against, and what not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

SCALES = (5e-3, 8e-5, 1.2e-6)  # distances, of what is differentiated by: float32's, and smaller
MIDDLE = 1  # of these: the one that is tried first, the best one for smooth functions in float64
_SURE = 10.0  # standard deviations that a slope may be off
_GOOD = 0.25  # a scale whose error is below this, of the slope, says something
_ZERO = 1e-3  # the same for slopes that vanish, of size by size
_AT = np.array([0.25, 0.5, 0.75, 1.0])  # of the distance: where the function is asked, both ways
_ODD = np.stack([_AT, _AT**3], axis=1)
_EVEN = np.stack([_AT**2, _AT**4], axis=1)


class Slopes(NamedTuple):
    """What differences at one scale say, for each number that the function answers.

    Attributes:
        values: the slopes.
        errors: how far they may be off, as the points that were asked scatter around them.
        bends: how much the slope changes over the distance.
        constant: nothing changed at all.
        kinked: the function goes up, or down, on both sides.
    """

    values: np.ndarray
    errors: np.ndarray
    bends: np.ndarray
    constant: np.ndarray
    kinked: np.ndarray


def slopes(
    at: Callable[[float], np.ndarray],
    of_size: float,
    unit: float,
    middle: np.ndarray,
    sizes: np.ndarray,
    eps: Callable[[], np.ndarray],
) -> Slopes:
    """The slopes at 0 of the numbers that `at` answers.

    An odd and an even cubic or quartic are laid through the points: what they leave over is the
    noise of the function, or its terms of higher order.

    Args:
        at: asked for four points at each side.
        of_size: where the farthest is, of the size of what is differentiated by.
        unit: that size.
        middle: what it answers for 0.
        sizes: of what is answered.
        eps: asked after all points: to what precision they were computed.
    """
    distance = of_size * unit
    high = np.stack([at(distance * d) for d in _AT])
    low = np.stack([at(-distance * d) for d in _AT])
    with np.errstate(all="ignore"):
        odd, even = (high - low) / 2, (high + low) / 2 - middle
        slope, left_of_odd = _fit(_ODD, odd)
        bend, left_of_even = _fit(_EVEN, even)
        noise = np.sqrt((left_of_odd + left_of_even) / 4)
        spread = float(np.sqrt(np.linalg.inv(_ODD.T @ _ODD)[0, 0]))
        rounding = 4 * eps() * (sizes + np.abs(slope) / of_size)
        kinked = np.abs(even[0]) > 0.15 * np.abs(even[-1])
        return Slopes(
            slope / distance,
            (_SURE * spread * noise + rounding) / distance,
            2 * np.abs(bend) / distance,
            ((high == middle) & (low == middle)).all(axis=0),
            kinked & (np.abs(even[-1]) > 0.1 * np.abs(odd[-1])) & (np.abs(even[-1]) > rounding),
        )


def _fit(columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first coefficient of the least squares fit, and the sum of squares it leaves over."""
    coefficients = np.linalg.pinv(columns) @ values
    left = values - columns @ coefficients
    return coefficients[0], (left**2).sum(axis=0)


class Verdict(NamedTuple):
    """For each number: whether a rule is as some scale says, or other than all of them say."""

    right: np.ndarray
    wrong: np.ndarray


def verdict(
    found: np.ndarray,
    scales: Sequence[Slopes],
    sizes: np.ndarray,
    relative: float,
    rounding: np.ndarray,
) -> Verdict:
    """Holds what a rule says against differences.

    Wrong is only what two scales, of which neither noise nor a jump is known, say other than the
    rule and as each other, and what no scale speaks for: at the largest one a staircase has the
    slope that its rule may well be meant to have.

    Args:
        found: what the rule says.
        scales: from large to small; or one.
        sizes: of the numbers where the argument moves by its own size.
        relative: what rules and slopes may differ by.
        rounding: how far the rule's own rounding may take it off.
    """
    right = np.zeros(found.shape, bool)
    spoken_for, against = right.copy(), []
    constant = np.stack([one.constant for one in scales])
    with np.errstate(all="ignore"):
        for n, one in enumerate(scales):
            largest = np.fmax(np.abs(found), np.abs(one.values))
            known = relative * np.abs(one.values) + one.errors
            off = known + rounding
            settled = np.isfinite(one.values) & np.isfinite(one.errors)
            near = settled & (np.abs(found - one.values) <= off)
            small = known <= _ZERO * np.fmax(sizes, one.bends)
            right |= near & ((known <= _GOOD * largest) | small)
            right |= one.constant & (found == 0)
            loosely = settled & (np.abs(found - one.values) <= off + one.bends)
            spoken_for |= loosely & (one.errors <= np.fmax(np.abs(one.values), one.bends))
            still = constant[n] & ~constant[: n + 1].all(axis=0)
            sure = (off <= _GOOD * largest) | (~np.isfinite(found) & (one.errors <= sizes * _ZERO))
            against.append(settled & ~near & sure & ~still)
    wrong = _agreed(scales, against, relative) & ~spoken_for & ~right
    return Verdict(right, wrong)


def _agreed(scales: Sequence[Slopes], against: Sequence[np.ndarray], relative: float) -> np.ndarray:
    """Where at least two scales are against a rule, and say the same."""
    which = np.stack(against)
    values = np.where(which, np.stack([one.values for one in scales]), np.nan)
    errors = np.where(which, np.stack([one.errors for one in scales]), 0.0)
    highest, lowest = np.fmax.reduce(values), np.fmin.reduce(values)
    with np.errstate(all="ignore"):
        near = highest - lowest <= 2 * errors.max(axis=0) + relative * np.abs(highest)
    return (which.sum(axis=0) >= 2) & near
