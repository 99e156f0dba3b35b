"""The plan of a crossing, and the capabilities that decide how its host calls are made.

A capability registers itself when its folder is imported: as a stage of the crossing, which may
take over and leave the rest to the stages after it, as another way to enter the host function, or
as what selects the batch elements.
The flavors, which make plans, know none of them.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

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
        """Count those of one crossing whose calls are made later, and record how many they are."""
        ...

    def calls(self, mask: np.ndarray) -> int:
        """Return the number of host calls of one crossing."""
        ...

    def crossing(self, make_calls: MakeCalls) -> Crossing:
        """Build a crossing that makes calls for those only; the other results are zero."""
        ...


class Stage(enum.IntEnum):
    """What a plan decides, in this order."""

    WHEN = 0  # the calls are made
    WHERE = 1  # they run
    WHICH = 2  # batch elements they are made for


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
        stage: the first stage that is not decided.
    """

    callback: HostCallback
    lowered: LoweredSite
    operand_dtypes: Sequence[Any]
    result_dtypes: Sequence[Any]
    recorder_now: Callable[[], Recorder | None] = active
    on_device: bool = False
    stage: int = Stage.WHEN

    def entry(self, site: LoweredSite | None = None) -> Adapt | None:
        """Return what enters the host function in another way; None: Python calls it.

        Args:
            site: has the avals of one call; None: `lowered` has.
        """
        for applies, enter in _entries:
            if applies(self.callback):
                return enter(self.callback, site or self.lowered)
        return None

    def selection(self) -> Select | None:
        """Return what selects the batch elements of a crossing; None: it calls for all."""
        for applies, select in _selections:
            if applies(self.callback):
                return select(self)
        return None


# Makes what XLA calls.
Build = Callable[[CallPlan], Crossing]
_Applies = Callable[[HostCallback], bool]
_Build = TypeVar("_Build", bound=Build)
_Enter = TypeVar("_Enter", bound=Callable[[HostCallback, LoweredSite], Adapt])
_Selecting = TypeVar("_Selecting", bound=Callable[[CallPlan], Select])
_stages: list[tuple[Stage, _Applies, Build]] = []
_entries: list[tuple[_Applies, Callable[[HostCallback, LoweredSite], Adapt]]] = []
_selections: list[tuple[_Applies, Callable[[CallPlan], Select]]] = []


def decides(stage: Stage, applies: _Applies) -> Callable[[_Build], _Build]:
    """Register what builds the crossings of the callbacks that `applies` is true for."""

    def register(build: _Build) -> _Build:
        _stages.append((stage, applies, build))
        _stages.sort(key=lambda registered: registered[0])
        return build

    return register


def enters(applies: _Applies) -> Callable[[_Enter], _Enter]:
    """Register another way to enter the host functions of some callbacks, see `CallPlan.entry`."""

    def register(enter: _Enter) -> _Enter:
        _entries.append((applies, enter))
        return enter

    return register


def selects(applies: _Applies) -> Callable[[_Selecting], _Selecting]:
    """Register what selects batch elements of some callbacks, see `CallPlan.selection`."""

    def register(select: _Selecting) -> _Selecting:
        _selections.append((applies, select))
        return select

    return register


def leaves_xla(callback: HostCallback) -> bool:
    """Return whether its calls are made at another time, or elsewhere than where XLA crosses."""
    return any(stage < Stage.WHICH and applies(callback) for stage, applies, _ in _stages)


def crossing(plan: CallPlan) -> Crossing:
    """Build the function that XLA calls: NumPy arrays in, a tuple of NumPy arrays out."""
    __tracebackhide__ = True
    for stage, applies, build in _stages:
        if stage >= plan.stage and applies(plan.callback):
            return build(dataclasses.replace(plan, stage=stage + 1))
    return build_crossing(
        plan.callback, plan.lowered, plan.operand_dtypes, plan.result_dtypes, plan.entry(),
        plan.recorder_now,
    )  # fmt: skip
