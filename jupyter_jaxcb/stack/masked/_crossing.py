"""One crossing of a masked call: it calls the host function for the needed batch elements."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...recording import LoweredSite, Recorder, active
from ..core import HostCallback, HostFunction
from ..dispatch import (
    CallPlan,
    CollectedResults,
    Crossing,
    Elements,
    ElementSchedule,
    Stage,
    checker_of,
    decides,
    finite_checker,
    looped_calls,
    parts_of_crossing,
    reporting_interrupts,
    single_call,
)
from ..results import ResultChecker
from ._elements import NeededElements
from ._gather import Gathering

_CHECKERS = 64  # kept for each call site: one for each number of gathered elements

# Makes the host calls of one crossing: for the given elements of looped vmaps, or one call for so
# many gathered elements (None: the call is not batched). Returns its results.
MakeCalls = Callable[
    [Elements | int | None, Sequence[np.ndarray], Recorder | None], tuple[np.ndarray, ...]
]

# Makes them for the elements that one mask selects, given the operands of all.
_Call = Callable[[MakeCalls, Sequence[np.ndarray], Recorder | None], tuple[np.ndarray, ...]]
# Returns how many elements a mask selects, and the function that makes their calls.
_Select = Callable[[np.ndarray], tuple[int, _Call]]


@decides(Stage.WHICH, lambda callback: callback.masked)
def build_masked_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing whose last operand, the mask, says for which elements to call."""
    callback, lowered, recorder_now = plan.callback, plan.lowered, plan.recorder_now
    adapt, check, shapes, dtypes = parts_of_crossing(
        callback, lowered, plan.operand_dtypes, plan.result_dtypes, plan.entry()
    )
    if not lowered.levels:
        finite = finite_checker(shapes, dtypes)
        call = single_call(callback.host, lowered, adapt, check, finite, recorder_now)
        return _if_needed(callback.host, lowered, dtypes, call, recorder_now)
    checker = gathered_checker(callback, lowered, dtypes)

    def make_calls(
        elements: Elements | int | None, operands: Sequence[np.ndarray], recorder: Recorder | None
    ) -> tuple[np.ndarray, ...]:
        site, now = (callback.host, lowered, adapt), lambda: recorder
        if isinstance(elements, Elements):
            collected = functools.partial(
                CollectedResults, elements.order.size, check, shapes, dtypes
            )
            return looped_calls(*site, elements, collected, now)(*operands)
        own, own_shapes = checker(elements)
        return single_call(*site, own, finite_checker(own_shapes, dtypes), now)(*operands)

    return masked_crossing(callback.host, lowered, dtypes, make_calls, recorder_now)


def _if_needed(
    host: HostFunction,
    lowered: LoweredSite,
    dtypes: Sequence[np.dtype],
    call: Crossing,
    recorder_now: Callable[[], Recorder | None],
) -> Crossing:
    """Build a crossing without vmap: `call`, or nothing."""
    zeros = _zeros(lowered, dtypes)

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        *arrays, mask = operands
        needed = bool(mask)
        recorder = recorder_now()
        if recorder is not None:
            recorder.masks.add(lowered, (1, int(needed)))
        return call(*arrays) if needed else zeros

    return reporting_interrupts(cross, lowered, host)


def masked_crossing(
    host: HostFunction,
    lowered: LoweredSite,
    dtypes: Sequence[np.dtype],
    make_calls: MakeCalls,
    recorder_now: Callable[[], Recorder | None] = active,
) -> Crossing:
    """Build a crossing that makes the host calls for which the mask, its last operand, is true.

    Args:
        host: the host function.
        lowered: the site.
        dtypes: the result dtypes; where no call is made, results are zero.
        make_calls: makes the host calls.
        recorder_now: returns the recorder of one crossing.
    """
    size = math.prod(level.size for level in lowered.levels)
    select = _gathered(lowered) if lowered.elements is None else _looped(lowered)

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        *arrays, mask = operands
        recorder = recorder_now()
        count, call = select(mask)
        if recorder is not None:
            recorder.masks.add(lowered, (size, count))
        if count == 0:
            return _zeros(lowered, dtypes)
        return call(make_calls, arrays, recorder)

    return reporting_interrupts(cross, lowered, host)


def _looped(lowered: LoweredSite) -> _Select:
    schedule = ElementSchedule(lowered)

    def select(mask: np.ndarray) -> tuple[int, _Call]:
        elements = NeededElements(schedule, mask)
        return elements.order.size, lambda calls, *given: calls(elements, *given)

    return select


def _gathered(lowered: LoweredSite) -> _Select:
    gathering = Gathering(lowered)

    def select(mask: np.ndarray) -> tuple[int, _Call]:
        needed = gathering.needed(mask)

        def call(
            calls: MakeCalls, operands: Sequence[np.ndarray], recorder: Recorder | None
        ) -> Any:
            gathered = gathering.gather(operands, needed)
            results = calls(gathering.count(needed), gathered, recorder)
            return gathering.scatter(results, needed)

        return needed.size, call

    return select


def _zeros(lowered: LoweredSite, dtypes: Sequence[np.dtype]) -> tuple[np.ndarray, ...]:
    return tuple(
        np.zeros(aval.shape, dtype) for aval, dtype in zip(lowered.results, dtypes, strict=True)
    )


def gathered_checker(
    callback: HostCallback, lowered: LoweredSite, dtypes: Sequence[np.dtype]
) -> Callable[[int | None], tuple[ResultChecker, list[tuple[int, ...]]]]:
    """Return a function from a number of gathered elements to the checker and shapes of results."""
    levels = len(lowered.levels)
    inner = [aval.shape[levels:] for aval in lowered.results]

    @functools.lru_cache(_CHECKERS)
    def of(count: int | None) -> tuple[ResultChecker, list[tuple[int, ...]]]:
        batch = () if count is None else (count,)
        shapes = [(*batch, *shape) for shape in inner]
        return checker_of(callback, lowered, shapes, dtypes, batch), shapes

    return of
