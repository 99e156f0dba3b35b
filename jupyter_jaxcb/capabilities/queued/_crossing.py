"""One queued crossing: keep the operands for later, and go on with the program."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from ...recording import Aval, LoweredSite, Note, NoteKind, Recorder, active
from ...stack.call import HostCallback, HostFunction, Topic, marks, notes
from ...stack.dispatch import (
    CallPlan,
    Crossing,
    Select,
    Stage,
    crossing,
    decides,
    reporting_interrupts,
    starts_unchecked,
)
from ...stack.errors import HostCallError, failing_while, running_now
from ...stack.interrupt import is_interrupted, refuse_call, report_failure
from ...stack.trace import expect_host_calls
from ._barrier import wait_in_barriers
from ._queue import OVERHEAD_BYTES, Crossed, Source, queue
from ._recorder import QueuedRecorder

_ARRAY_BYTES = 150  # of an array, besides its data


class _Delivery(threading.local):
    recorder: Any = None  # of the crossing that this thread delivers, a `QueuedRecorder`


_delivery = _Delivery()


def _is_queued(callback: HostCallback) -> bool:
    return callback.options.queued


marks("queued", _is_queued)


@notes(Topic.WHEN)
def _note(callback: HostCallback, *_: Any) -> Note | None:
    return Note(NoteKind.QUEUED) if _is_queued(callback) else None


@decides(Stage.WHEN, _is_queued)
def build_queued_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing that queues the host calls."""
    wait_in_barriers()
    expect_host_calls()
    callback, lowered = plan.callback, plan.lowered
    make_calls = crossing(dataclasses.replace(plan, recorder_now=lambda: _delivery.recorder))
    host, drops = callback.host, callback.options.on_full == "drop"

    def deliver(crossed: Crossed, recorder: QueuedRecorder | None) -> None:
        *_, during, context, operands = crossed
        for operand in operands:
            operand.flags.writeable = False
        _delivery.recorder = recorder
        try:
            with failing_while(during):
                context.run(make_calls, *operands)
        finally:
            _delivery.recorder = None

    nbytes = sum(map(_bytes, lowered.operands, plan.operand_dtypes))
    select = plan.selection()
    elements = 1 if lowered.elements is None else lowered.elements

    def calls(operands: Sequence[np.ndarray]) -> int:
        return elements if select is None else select.calls(operands[-1])

    source = Source(deliver, lowered, nbytes if nbytes > OVERHEAD_BYTES else 0, calls)
    cross = _adding(source, host, drops=drops)
    return cross if select is None else _if_any(select, cross, lowered, host)


def _if_any(select: Select, cross: Crossing, lowered: LoweredSite, host: HostFunction) -> Crossing:
    """Return a crossing that adds nothing to the queue if no batch element is selected."""

    def cross_if_any(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        return cross(*operands) if select.count(operands[-1], active()) else ()

    return reporting_interrupts(cross_if_any, lowered, host)


@starts_unchecked("cross")
def _adding(source: Source, host: HostFunction, *, drops: bool) -> Crossing:
    """Build a crossing that adds its operands to the queue, see `single_call`.

    XLA copies the operands of each crossing. An array that does not own its memory is copied here.
    """
    lowered, nbytes = source.lowered, source.nbytes

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        try:
            if is_interrupted():
                refuse_call(lowered, host)
            recorder = active()
            if not (queue.has_room(nbytes) or _makes_room(source, host, recorder, operands, drops)):
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

    return cross


def _makes_room(
    source: Source,
    host: HostFunction,
    recorder: Recorder | None,
    operands: Sequence[np.ndarray],
    drops: bool,
) -> bool:
    """Wait until the queue has room, unless crossings are dropped; return whether it has."""
    if drops:
        calls = source.calls(operands)
        if recorder is None:
            queue.note_dropped(source.name, calls)
        else:
            recorder.queue.full(source.lowered, calls)
        return False
    if recorder is None:
        queue.wait_for_room(source.nbytes, lambda: refuse_call(source.lowered, host))
        return True
    clock, uses = recorder.clock, recorder.queue
    uses.waits(source.lowered)
    counted = clock()

    def look() -> None:
        nonlocal counted
        now = clock()
        uses.waited(source.lowered, now - counted)
        counted = now
        refuse_call(source.lowered, host)

    queue.wait_for_room(source.nbytes, look)
    uses.waited(source.lowered, clock() - counted)
    return True


def _bytes(aval: Aval, dtype: Any) -> int:
    return _ARRAY_BYTES + math.prod(aval.shape) * getattr(dtype, "itemsize", 8)
