"""Estimate slopes by central differences at several scales, with error bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ...capabilities.derivatives import step_sizes
from ._subject import Subject, one_by_one

Moves = dict[int, np.ndarray]  # changes by operand; the largest change is 1
_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)  # relative step of `step_sizes` in float64


class Direction(NamedTuple):
    """A direction to differentiate along.

    Attributes:
        changes: the change of each operand that moves.
        unit: the largest change when each operand changes by its own size.
        words: the operands in a message, ``by args[0]``.
    """

    changes: Moves
    unit: float
    words: str


def directions_of(subject: Subject) -> list[Direction]:
    """Return the directions: first operands alone, others together, both parts if complex."""
    generator = np.random.default_rng(0)
    moving = [
        n
        for n, x in enumerate(subject.operands)
        if is_inexact(x.dtype) and x.size and subject.is_differentiated_by(n)
    ]
    directions = []
    for group in one_by_one(moving):
        words = f"by {subject.names[group[0]]}"
        words += f" and {len(group) - 1} others" if len(group) > 1 else ""
        is_complex = any(subject.operands[n].dtype.kind == "c" for n in group)
        for factor in (1, 1j) if is_complex else (1,):
            directions.append(_direction(subject, group, generator, factor, words))
    return directions


def _direction(
    subject: Subject, group: Sequence[int], generator: np.random.Generator, factor: Any, words: str
) -> Direction:
    changes: Moves = {}
    for n in group:
        x = subject.operands[n]
        signs = generator.choice([-1.0, 1.0], x.shape)
        sizes = step_sizes(np.abs(x).astype(np.float64)) / _STEP
        changes[n] = np.asarray(sizes * generator.uniform(0.5, 1.0, x.shape) * signs)
        if x.dtype.kind == "c":
            changes[n] = changes[n] * factor
    unit = max(float(np.abs(one).max()) for one in changes.values())
    rounded = {n: (one / unit).astype(subject.operands[n].dtype) for n, one in changes.items()}
    return Direction(rounded, unit, words)


def is_inexact(dtype: Any) -> bool:
    return dtype.kind in "fc" or dtype == ml_dtypes.bfloat16


SCALES = (5e-3, 8e-5, 1.2e-6)  # distances relative to the argument, suited to float32 and float64
MIDDLE = 1  # index of the scale that is tried first, best for smooth functions in float64
_SURE = 10.0  # standard deviations of the error bound of a slope
_GOOD = 0.25  # a scale counts if its error is below this fraction of the slope
_ZERO = 1e-3  # for vanishing slopes: below this fraction of the size of the result
_AT = np.array([0.25, 0.5, 0.75, 1.0])  # sampled points on both sides, relative to the distance
_ODD = np.stack([_AT, _AT**3], axis=1)
_EVEN = np.stack([_AT**2, _AT**4], axis=1)


class Slopes(NamedTuple):
    """Slopes at one scale, one for each compared number.

    Attributes:
        values: the slopes.
        errors: error bounds, from the scatter of the sampled points.
        bends: how much the slope changes over the distance.
        constant: whether the value is the same at all points.
        kinked: whether the function rises, or falls, on both sides.
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
    """Estimate the slopes of `at` at 0.

    An odd cubic and an even quartic are fitted to the points; the residuals are the noise of the
    function, or its terms of higher order.

    Args:
        at: returns the numbers at a distance; called for four points on each side.
        of_size: distance of the farthest point, relative to `unit`.
        unit: size of the argument.
        middle: the numbers at 0.
        sizes: sizes of the results that the numbers come from.
        eps: returns the precision of each number; called after all points.
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
    """Return the first coefficient of the least squares fit, and the residual sum of squares."""
    coefficients = np.linalg.pinv(columns) @ values
    left = values - columns @ coefficients
    return coefficients[0], (left**2).sum(axis=0)


class Verdict(NamedTuple):
    """For each number, whether the rule agrees with a scale, or contradicts them."""

    right: np.ndarray
    wrong: np.ndarray


def verdict(
    found: np.ndarray,
    scales: Sequence[Slopes],
    sizes: np.ndarray,
    relative: float,
    rounding: np.ndarray,
    allowed: np.ndarray,
) -> Verdict:
    """Compare the derivatives of a rule with differences.

    A derivative is wrong only if at least two scales without noise or jumps contradict the rule and
    agree with each other, and if no scale supports it. A single supporting scale is enough because
    a staircase function has, at the largest scale, the slope that its rule may intend.

    Args:
        found: the derivatives of the rule.
        scales: the slopes, from large to small scale; at least one.
        sizes: changes of the numbers when the argument changes by its own size.
        relative: tolerance between rules and slopes, relative to the slope.
        rounding: absolute tolerance for the rounding errors of the rule.
        allowed: differences between rule and slope that count as none.
    """
    right = np.zeros(found.shape, bool)
    supported, against = right.copy(), []
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
            right |= settled & (np.abs(found - one.values) + one.errors <= allowed)
            loosely = settled & (np.abs(found - one.values) <= off + one.bends)
            supported |= loosely & (one.errors <= np.fmax(np.abs(one.values), one.bends))
            still = constant[n] & ~constant[: n + 1].all(axis=0)
            sure = (off <= _GOOD * largest) | (~np.isfinite(found) & (one.errors <= sizes * _ZERO))
            against.append(settled & ~near & sure & ~still)
    wrong = _agreed(scales, against, relative) & ~supported & ~right
    return Verdict(right, wrong)


def _agreed(scales: Sequence[Slopes], against: Sequence[np.ndarray], relative: float) -> np.ndarray:
    """Return where at least two scales contradict the rule and agree with each other."""
    which = np.stack(against)
    values = np.where(which, np.stack([one.values for one in scales]), np.nan)
    errors = np.where(which, np.stack([one.errors for one in scales]), 0.0)
    highest, lowest = np.fmax.reduce(values), np.fmin.reduce(values)
    with np.errstate(all="ignore"):
        near = highest - lowest <= 2 * errors.max(axis=0) + relative * np.abs(highest)
    return (which.sum(axis=0) >= 2) & near
