"""One crossing of a masked call: it calls the host function for the needed batch elements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ...recording import LoweredSite, Recorder
from ...stack.dispatch import (
    CallPlan,
    CollectedResults,
    Crossing,
    Elements,
    Parts,
    Selection,
    Stage,
    decides,
    finite_checker,
    looped_calls,
    parts_of_crossing,
    reporting_interrupts,
    selects_in,
    single_call,
)
from ._selection import NeededElements

_PARTS = 64  # kept for each call site: one for each number of gathered elements

# Makes the host calls of one crossing for selected batch elements; returns their results.
MakeCalls = Callable[
    [Parts, Selection, Sequence[np.ndarray], Recorder | None], tuple[np.ndarray, ...]
]


@decides(Stage.WHICH, lambda callback: callback.masked)
def build_masked_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing whose last operand, the mask, says for which elements to call."""
    __tracebackhide__ = True
    host, lowered = plan.callback.host, plan.lowered
    if not lowered.levels:
        return _if_needed(plan)

    def make_calls(
        parts: Parts, chosen: Selection, operands: Sequence[np.ndarray], recorder: Recorder | None
    ) -> tuple[np.ndarray, ...]:
        adapt, check, shapes, dtypes = parts
        site, now = (host, lowered, adapt), lambda: recorder
        if isinstance(chosen, Elements):
            collected = functools.partial(CollectedResults, chosen.size, check, shapes, dtypes)
            return looped_calls(*site, chosen, collected, now)(*operands)
        return single_call(*site, check, finite_checker(shapes, dtypes), now)(*operands)

    return masked_crossing(plan, make_calls)


def _parts_of(plan: CallPlan, site: LoweredSite) -> Parts:
    """Return the parts of the calls of a `Selection.site`."""
    __tracebackhide__ = True
    return parts_of_crossing(
        plan.callback, site, plan.operand_dtypes, plan.result_dtypes, plan.entry(site)
    )


def _if_needed(plan: CallPlan) -> Crossing:
    """Build a crossing without vmap: one call, or none."""
    __tracebackhide__ = True
    host, lowered, recorder_now = plan.callback.host, plan.lowered, plan.recorder_now
    adapt, check, shapes, dtypes = _parts_of(plan, lowered)
    call = single_call(host, lowered, adapt, check, finite_checker(shapes, dtypes), recorder_now)
    zeros = _zeros(plan)

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        *arrays, mask = operands
        needed = bool(mask)
        recorder = recorder_now()
        if recorder is not None:
            recorder.masks.add(lowered, (1, int(needed)))
        return call(*arrays) if needed else zeros

    return reporting_interrupts(cross, lowered, host)


@selects_in("cross")
def masked_crossing(plan: CallPlan, make_calls: MakeCalls) -> Crossing:
    """Build a crossing that makes the host calls for which the mask, its last operand, is true.

    Results are zero where no call is made.
    """
    __tracebackhide__ = True
    select, recorder_now = NeededElements(plan), plan.recorder_now
    parts_of = functools.lru_cache(_PARTS)(functools.partial(_parts_of, plan))
    parts_of(select.site)  # here an error is not one of a call

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        *arrays, mask = operands
        recorder = recorder_now()
        chosen = select(mask, recorder)
        if chosen.size == 0:
            return _zeros(plan)
        results = make_calls(parts_of(chosen.site), chosen, chosen.gather(arrays), recorder)
        return chosen.scatter(results)

    return reporting_interrupts(cross, plan.lowered, plan.callback.host)


def _zeros(plan: CallPlan) -> tuple[np.ndarray, ...]:
    avals, dtypes = plan.lowered.results, plan.result_dtypes
    return tuple(np.zeros(aval.shape, dtype) for aval, dtype in zip(avals, dtypes, strict=True))
