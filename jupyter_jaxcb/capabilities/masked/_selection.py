"""Which batch elements of a crossing have a mask that is true."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from ...recording import Recorder
from ...stack.dispatch import CallPlan, ElementSchedule, Selection, selects
from ._elements import LoopedElements
from ._gather import Gathering


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
