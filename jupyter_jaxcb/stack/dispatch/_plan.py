"""The plan of a crossing, which the capabilities of its callback decide one after the other.

Each may build the crossing and leave the rest to those after it, enter the host function in another
way, or select the batch elements. The flavors, which make plans, know none of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...recording import LoweredSite, Recorder, active
from ..call import HostCallback
from ._arguments import Adapt
from ._crossing import Crossing, Parts, build_crossing
from ._elements import Selection

# Makes the host calls of one crossing for selected batch elements; returns their results.
MakeCalls = Callable[
    [Parts, Selection, Sequence[np.ndarray], Recorder | None], tuple[np.ndarray, ...]
]


class Select(Protocol):
    """Selects the batch elements of the crossings of one site by a mask, their last operand.

    Attributes:
        site: a site with the avals of one call for all elements.
    """

    site: LoweredSite

    def __call__(self, mask: np.ndarray, recorder: Recorder | None) -> Selection:
        """Return those of one crossing, and record how many they are."""
        ...

    def count(self, mask: np.ndarray, recorder: Recorder | None) -> int:
        """Count the host calls of one crossing, which are made later, and record its elements."""
        ...

    def crossing(self, make_calls: MakeCalls) -> Crossing:
        """Build a crossing that makes calls for those only; the other results are zero."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class CallPlan:
    """Everything that decides how the host calls of one crossing are made.

    Attributes:
        callback: the host function, its trees and its options.
        lowered: the lowered site under which host calls are recorded.
        operand_dtypes: the operand dtypes, as in JAX's avals.
        result_dtypes: the result dtypes, as NumPy dtypes.
        recorder_now: returns the recorder of one crossing.
        on_device: whether the host function gets the memory of another device than the CPU.
        undecided: the first of `options.Decides` that no capability has decided yet.
    """

    callback: HostCallback
    lowered: LoweredSite
    operand_dtypes: Sequence[Any]
    result_dtypes: Sequence[Any]
    recorder_now: Callable[[], Recorder | None] = active
    on_device: bool = False
    undecided: int = 0

    def entry(self, site: LoweredSite | None = None) -> Adapt | None:
        """Return what enters the host function in another way; None: Python calls it.

        Args:
            site: has the avals of one call; None: `lowered` has.
        """
        for row in self.callback.options.capabilities:
            if row.enter is not None:
                return row.enter(self.callback, site or self.lowered)
        return None

    def selection(self) -> Select | None:
        """Return what selects the batch elements of a crossing; None: it calls for all."""
        for row in self.callback.options.capabilities:
            if row.select is not None:
                return row.select(self)
        return None


# Makes what XLA calls.
Build = Callable[[CallPlan], Crossing]


def crossing(plan: CallPlan) -> Crossing:
    """Build the function that XLA calls: NumPy arrays in, a tuple of NumPy arrays out."""
    __tracebackhide__ = True
    for row in plan.callback.options.capabilities:
        if row.crossing is not None and row.decides >= plan.undecided:
            return row.crossing(dataclasses.replace(plan, undecided=row.decides + 1))
    return build_crossing(
        plan.callback, plan.lowered, plan.operand_dtypes, plan.result_dtypes, plan.entry(),
        plan.recorder_now,
    )  # fmt: skip
