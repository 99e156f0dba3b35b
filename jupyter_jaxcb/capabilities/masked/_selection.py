"""Which batch elements of a crossing have a mask that is true."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from ...recording import Recorder
from ...stack.dispatch import CallPlan, Elements, ElementSchedule, Selection, selects
from ._gather import Gathering


class LoopedElements(Elements):
    """Some of the elements of a schedule, without its last operand, which is the mask.

    Args:
        whole: the schedule.
        mask: the mask.
    """

    def __init__(self, whole: ElementSchedule, mask: np.ndarray) -> None:
        *plan, (_, rows) = whole.plan
        self.site = whole.site
        flat = mask.reshape(-1)
        needed = np.broadcast_to(flat, whole.order.shape) if rows is None else flat[rows]
        calls = np.flatnonzero(needed)
        self._count = whole.order.size
        self.order, self.size = whole.order[calls], calls.size
        self.plan = [(axes, None if rows is None else rows[calls]) for axes, rows in plan]

    def by_element(self, called: np.ndarray) -> np.ndarray:
        """Put each row where its batch element is; the rows of the others are zero."""
        placed = np.zeros((self._count, *called.shape[1:]), called.dtype)
        placed[self.order] = called
        return placed


def count_needed(mask: np.ndarray, elements: int) -> int:
    """Count the batch elements for which a mask is true; a vmap that maps it repeats no element."""
    return int(np.count_nonzero(mask)) * (elements // mask.size) if mask.size else 0


@selects(lambda callback: callback.masked)
class NeededElements:
    """Selects the batch elements whose mask is true, and counts them."""

    def __init__(self, plan: CallPlan) -> None:
        lowered = self._lowered = plan.lowered
        self._size = math.prod(level.size for level in lowered.levels)
        if lowered.elements is None:
            gathering = Gathering(lowered)
            self._choose: Callable[[np.ndarray], Selection] = gathering.select
            self.site = gathering.site(self._size)
        else:
            self._choose = functools.partial(LoopedElements, ElementSchedule(lowered))
            self.site = lowered

    def __call__(self, mask: np.ndarray, recorder: Recorder | None) -> Selection:
        """Return them."""
        chosen = self._choose(mask)
        if recorder is not None:
            recorder.masks.add(self._lowered, (self._size, chosen.size))
        return chosen
