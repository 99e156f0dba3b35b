"""How far the loops of a program are, and when they will end."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..notes import Store

_LONG = 60  # seconds
Steps = Sequence[tuple[int, int | None]]


class Progress:
    """Reads the step of the running loops again and again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first: tuple[float, float] | None = None  # time and share at the first look

    def text(self, seconds: float) -> str:
        """Return the step, and the time that is left if the lengths of the loops are known.

        Args:
            seconds: the time, on any clock that goes on.
        """
        steps = self._store.step()
        told = ", ".join(
            f"{'inner ' * (place > 0)}step {step:,}{'' if length is None else f' of {length:,}'}"
            for place, (step, length) in enumerate(steps)
        )
        left = self._left(seconds, steps)
        if left is None:
            return told
        told += f", about {left:,.0f} s left"
        return f"{told} {self._cost()}" if left > _LONG else told

    def _cost(self) -> str:
        """Return what slows a long run down, and what to do about it."""
        block, _ = self._store.latest or (None, b"")
        count = len(block.facts) if block else 0
        what = f"{count:,} variable{'s' * (count != 1)} in each step"
        return f"(part of it to watch {what}: name fewer, or send fewer steps with every=)"

    def _left(self, seconds: float, steps: Steps) -> float | None:
        share = _share(steps)
        if share is None or self._first is None or share < self._first[1]:
            self._first = None if share is None else (seconds, share)
            return None
        began, before = self._first
        if share == before:
            return None
        return (seconds - began) * (1 - share) / (share - before)


def _share(steps: Steps) -> float | None:
    """Return how much of the loops is done, from 0 to 1; None if a length is unknown."""
    share = 0.0
    for step, length in reversed(steps):
        if not length:
            return None
        share = (step + share) / length
    return share if steps and math.isfinite(share) else None
