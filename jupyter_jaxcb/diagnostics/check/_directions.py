"""Choose the directions to differentiate along: a few arguments alone, the others together."""

from __future__ import annotations

from collections.abc import Sequence
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
    without = subject.callback.not_differentiated
    moving = [
        n
        for n, x in enumerate(subject.operands)
        if is_inexact(x.dtype) and x.size and subject.argument_of(n) not in without
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
