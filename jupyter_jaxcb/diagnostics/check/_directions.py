"""Along what a callback is differentiated: a few arguments one by one, the others together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ...stack.derivatives import step_sizes
from ._subject import Subject, one_by_one

Moves = dict[int, np.ndarray]  # operand: a change of it, of which the largest is 1
_STEP = float(np.finfo(np.float64).eps) ** (1 / 3)  # of a float64's size, as `step_sizes` has it


class Direction(NamedTuple):
    """Along what is differentiated.

    Attributes:
        changes: of each operand that moves.
        unit: how far the farthest goes when each goes by its own size.
        words: ``by args[0]``.
    """

    changes: Moves
    unit: float
    words: str


def directions_of(subject: Subject) -> list[Direction]:
    """Each of the first operands alone, the others together; complex ones by both parts."""
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
