"""Which batch elements of a crossing have a mask that is true."""

from __future__ import annotations

import functools
import math

import numpy as np

from ...recording import Recorder
from ..dispatch import CallPlan, ElementSchedule, Select, Selection, selects
from ._elements import NeededElements
from ._gather import Gathering


@selects(lambda callback: callback.masked)
def needed_elements(plan: CallPlan) -> Select:
    """Return what selects the batch elements whose mask is true, and counts them."""
    lowered = plan.lowered
    size = math.prod(level.size for level in lowered.levels)
    choose = Gathering(lowered).select
    if lowered.elements is not None:
        choose = functools.partial(NeededElements, ElementSchedule(lowered))

    def select(mask: np.ndarray, recorder: Recorder | None) -> Selection:
        chosen = choose(mask)
        if recorder is not None:
            recorder.masks.add(lowered, (size, chosen.size))
        return chosen

    return select
