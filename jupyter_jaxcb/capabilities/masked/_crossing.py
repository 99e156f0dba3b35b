"""One crossing of a masked call: it calls the host function for the needed batch elements."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from ...recording import LoweredSite, Recorder
from ...stack import options
from ...stack.dispatch import (
    CallPlan,
    CollectedResults,
    Crossing,
    Elements,
    MakeCalls,
    Parts,
    Selection,
    finite_checker,
    looped_calls,
    parts_of_crossing,
    reporting_interrupts,
    selects_in,
    single_call,
)
from ._selection import Gathering, looped_elements

_PARTS = 64  # kept for each call site: one for each number of gathered elements


class NeededElements:
    """Selects the batch elements whose mask is true, see `Select`."""

    def __init__(self, plan: CallPlan) -> None:
        self._plan, self._lowered = plan, plan.lowered
        self._size = math.prod(level.size for level in plan.lowered.levels)
        if plan.lowered.elements is None:
            gathering = Gathering(plan.lowered)
            self._choose: Callable[[np.ndarray], Selection] = gathering.select
            self.site = gathering.site(self._size)
        else:
            self._choose = looped_elements(plan.lowered)
            self.site = plan.lowered

    def __call__(self, mask: np.ndarray, recorder: Recorder | None) -> Selection:
        """Return those of one crossing, and record how many they are."""
        chosen = self._choose(mask)
        self._record(chosen.size, recorder)
        return chosen

    def count(self, mask: np.ndarray, recorder: Recorder | None) -> int:
        """Count the host calls of one crossing, which are made later, and record its elements."""
        # A vmap that maps over the mask repeats no element.
        needed = int(np.count_nonzero(mask)) * (self._size // mask.size) if mask.size else 0
        self._record(needed, recorder)
        return min(needed, 1) if self._lowered.elements is None else needed

    def _record(self, needed: int, recorder: Recorder | None) -> None:
        if recorder is not None:
            recorder.counts.add(self._lowered, elements=self._size, needed=needed)

    @selects_in("cross")
    def crossing(self, make_calls: MakeCalls) -> Crossing:
        """Build a crossing that makes calls for those only; the other results are zero."""
        __tracebackhide__ = True
        plan, select = self._plan, self
        recorder_now = plan.recorder_now
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

    return NeededElements(plan).crossing(make_calls)


options.capability(
    options.Decides.WHICH,
    lambda given: bool(given.masked),
    crossing=build_masked_crossing,
    select=NeededElements,
    facts=lambda callback: {"masked": True, "reached": callback.options.masked == "text"},
    varies=True,
)


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
            recorder.counts.add(lowered, elements=1, needed=int(needed))
        return call(*arrays) if needed else zeros

    return reporting_interrupts(cross, lowered, host)


def _zeros(plan: CallPlan) -> tuple[np.ndarray, ...]:
    avals, dtypes = plan.lowered.results, plan.result_dtypes
    return tuple(np.zeros(aval.shape, dtype) for aval, dtype in zip(avals, dtypes, strict=True))
