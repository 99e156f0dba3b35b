"""The batch elements of looped vmaps for which a mask is true."""

from __future__ import annotations

import numpy as np

from ...stack.dispatch import Elements, ElementSchedule


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
