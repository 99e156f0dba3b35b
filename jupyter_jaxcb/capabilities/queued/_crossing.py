"""One queued crossing: keep the operands for later, and go on with the program."""

from __future__ import annotations

import dataclasses
import math
from contextvars import copy_context
from typing import Any

import numpy as np

from ...recording import Note, NoteKind, active
from ...stack import options
from ...stack.call import HostFunction, did_you_mean
from ...stack.dispatch import CallPlan, Crossing, Select, crossing, starts_unchecked
from ...stack.errors import HostCallError, running_now
from ...stack.interrupt import is_interrupted, refuse_call, report_failure
from ...stack.trace import expect_host_calls
from ._barrier import wait_in_barriers
from ._queue import OVERHEAD_BYTES, Source, queue

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


def build_queued_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing that queues the host calls."""
    wait_in_barriers()
    expect_host_calls()
    lowered, select = plan.lowered, plan.selection()
    elements = 1 if lowered.elements is None else lowered.elements
    cross = crossing(dataclasses.replace(plan, recorder_now=lambda: queue.recorder))

    def make_calls(*operands: np.ndarray) -> None:
        for operand in operands:
            operand.flags.writeable = False
        cross(*operands)

    itemsizes = [getattr(dtype, "itemsize", 8) for dtype in plan.operand_dtypes]
    nbytes = sum(
        _ARRAY_BYTES + math.prod(aval.shape) * itemsize
        for aval, itemsize in zip(lowered.operands, itemsizes, strict=True)
    )
    source = Source(
        lowered,
        make_calls,
        (lambda operands: elements) if select is None else lambda ops: select.calls(ops[-1]),
        nbytes if nbytes > OVERHEAD_BYTES else 0,
    )
    return _adding(source, plan.callback.host, select, plan.callback.options.on_full == "drop")


options.capability(
    options.Decides.WHEN,
    lambda given: given.queued,
    crossing=build_queued_crossing,
    note=lambda *_: Note(NoteKind.QUEUED),
    facts=lambda _: {"queued": True},
)


@starts_unchecked("cross")
def _adding(source: Source, host: HostFunction, select: Select | None, drops: bool) -> Crossing:
    """Build a crossing that adds its operands to the queue, see `single_call`.

    XLA copies the operands of each crossing. An array that does not own its memory is copied here.
    A crossing adds nothing if no batch element is selected.
    """
    lowered, nbytes = source.lowered, source.nbytes

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        try:
            if is_interrupted():
                refuse_call(lowered, host)
            recorder = active()
            if select is not None and not select.count(operands[-1], recorder):
                return ()
            if not queue.has_room(nbytes) and not has_room_now(operands, recorder):
                return ()
            for operand in operands:
                if operand.base is not None:
                    operands = tuple(map(np.ndarray.copy, operands))
                    break
            now = 0 if recorder is None else recorder.clock()
            queue.add((source, recorder, now, running_now(), copy_context(), operands), nbytes)
            return ()
        except HostCallError:
            raise
        except BaseException as error:  # an interrupt
            raise report_failure(error, lowered, host.calls) from None

    def has_room_now(operands: Any, recorder: Any) -> bool:
        """Wait until the queue has room, unless crossings are dropped; return whether it has."""
        if drops and recorder is None:
            with queue.lock:
                queue.dropped[lowered.site.function] += source.calls(operands)
        elif drops:
            recorder.counts.add(lowered, full=source.calls(operands))
        else:
            start = 0 if recorder is None else recorder.clock()
            try:
                queue.wait_for_room(nbytes, lambda: refuse_call(lowered, host))
            finally:
                if recorder is not None:
                    recorder.counts.add(lowered, waits=1, waited_ns=recorder.clock() - start)
        return not drops

    return cross
