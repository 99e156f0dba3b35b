"""One queued crossing: keep the operands for later, and go on with the program."""

from __future__ import annotations

import dataclasses
import math
from contextvars import copy_context
from typing import Any

import numpy as np

from ...recording import Note, NoteKind, Recorder, active
from ...stack import options
from ...stack.call import did_you_mean
from ...stack.dispatch import CallPlan, Crossing, crossing, starts_unchecked
from ...stack.errors import HostCallError, running_now
from ...stack.interrupt import refusal, refuse_call, report_failure
from ...stack.trace import expect_host_calls
from ._barrier import wait_in_barriers
from ._queue import queue

_LEAST_BYTES = 1_000  # of a crossing in the queue
_ARRAY_BYTES = 150  # of an array, besides its data
_ON_FULL = ("wait", "drop")  # what to do if the queue is full

options.refuse_result(
    "queued", "the program needs it at once", "Declare result=None, or drop queued=True."
)


@options.check("on_full")
def _check_on_full(on_full: Any) -> Any:
    __tracebackhide__ = True
    if on_full not in _ON_FULL:
        raise ValueError(
            f"unknown on_full {on_full!r}{did_you_mean(str(on_full), _ON_FULL)} "
            "Pass on_full='wait' or on_full='drop'."
        )
    return on_full


@starts_unchecked("cross")
def build_queued_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing that adds its operands to the queue, see `single_call`.

    XLA copies the operands of each crossing. An array that does not own its memory is copied here.
    A crossing adds nothing if no batch element is selected.
    """
    wait_in_barriers()
    expect_host_calls()
    lowered, host, select = plan.lowered, plan.callback.host, plan.selection()
    drops = plan.callback.options.on_full == "drop"
    make_calls = crossing(dataclasses.replace(plan, recorder_now=lambda: queue.recorder))
    elements = 1 if lowered.elements is None else lowered.elements
    sizes = [
        _ARRAY_BYTES + math.prod(aval.shape) * getattr(dtype, "itemsize", 8)
        for aval, dtype in zip(lowered.operands, plan.operand_dtypes, strict=True)
    ]
    nbytes = max(_LEAST_BYTES, sum(sizes))

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        try:
            if refusal.until is not None:
                refuse_call(lowered, host)
            recorder, calls = active(), elements
            if select is not None:
                calls = select.count(operands[-1], recorder)
                if not calls:
                    return ()
            if not queue.has_room(nbytes) and not make_room(calls, recorder):
                return ()
            for operand in operands:
                if operand.base is not None:
                    operands = tuple(map(np.ndarray.copy, operands))
                    break
            now, during = 0 if recorder is None else recorder.clock(), running_now()
            queue.add(
                (
                    lowered, calls, nbytes, recorder, now, during, make_calls, copy_context(),
                    operands,
                ),
                nbytes,
            )  # fmt: skip
            return ()
        except HostCallError:
            raise
        except BaseException as error:  # an interrupt
            raise report_failure(error, lowered, host.calls) from None

    def make_room(calls: int, recorder: Recorder | None) -> bool:
        """Wait until the queue has room; or return False if the crossing is to be dropped."""
        if not drops:
            start = 0 if recorder is None else recorder.clock()
            try:
                queue.wait_for_room(nbytes, lambda: refuse_call(lowered, host))
            finally:
                if recorder is not None:
                    recorder.counts.add(lowered, waits=1, waited_ns=recorder.clock() - start)
        elif recorder is not None:
            recorder.counts.add(lowered, full=calls)
        else:
            with queue.lock:
                queue.dropped[lowered.site.function] += calls
        return not drops

    return cross


options.capability(
    options.Decides.WHEN,
    lambda given: given.queued,
    crossing=build_queued_crossing,
    note=lambda *_: Note(NoteKind.QUEUED),
    facts=lambda _: {"queued": True},
)
