"""One crossing whose host calls run in an executor."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jupyter_jaxcb_worker import Column, Numbers, Task, number_of

from ...recording import LoweredSite, Recorder
from ...stack.call import HostFunction, name_of
from ...stack.dispatch import (
    CallPlan,
    CollectedResults,
    Crossing,
    Elements,
    ElementSchedule,
    MakeCalls,
    Parts,
    Selection,
    facts_of,
    parts_of_crossing,
    record_values,
    reporting_interrupts,
    takes_flat_operands,
    to_arguments,
)
from ...stack.errors import EndedError, NotCalledError, describe, is_a
from ...stack.interrupt import refuse_call, report_failure
from ...stack.options import Decides, Options, capability
from ...stack.results import ResultChecker, shown
from ...stack.trace import CROSSINGS, WAITING
from ..lint import warn_of_worker_state
from ._chunks import ChunkRun, Log
from ._options import check_can_be_sent, leaves_process
from ._pools import needed, pool_of


def build_spread_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing that runs the host calls in the callback's executor.

    Raises:
        ExecutorError: if the executor cannot be reached.
        TypeError: if the function or one of its arguments cannot be pickled.
    """
    __tracebackhide__ = True
    callback, lowered, options = plan.callback, plan.lowered, plan.callback.options
    if pool_of(options.executor).travels:
        pickled(callback.host, options)
        for value in callback.static.values.values():
            _bytes_of(value, f"the argument {shown(value)} of {callback.host.name}", options)
    select = plan.selection()
    if select is not None:
        return select.crossing(_calls_for_selected(plan))
    parts = parts_of_crossing(
        callback, lowered, plan.operand_dtypes, plan.result_dtypes, plan.entry()
    )
    schedule, numbers = None, None
    if lowered.elements is not None:
        schedule = ElementSchedule(lowered)
        # The batch element of each call: a range, which is small to send, if it is one.
        numbers = schedule.order if len(lowered.levels) > 1 else range(schedule.size)
    crossing = _Crossing(plan, parts, lowered, schedule, numbers)
    return reporting_interrupts(crossing.cross, lowered, callback.host)


def _warn(function: Any, given: Options, registered: bool) -> None:
    if given.flavor == "io" and leaves_process(given.executor):
        warn_of_worker_state(function, name_of(function), given.spelled("executor"))


capability(
    Decides.WHERE,
    lambda given: given.executor is not None,
    crossing=build_spread_crossing,
    look=_warn,
)


def _calls_for_selected(plan: CallPlan) -> MakeCalls:
    """Return what makes the host calls for selected batch elements."""

    def make_calls(
        parts: Parts, chosen: Selection, operands: Sequence[np.ndarray], recorder: Recorder | None
    ) -> tuple[np.ndarray, ...]:
        elements = chosen if isinstance(chosen, Elements) else None
        return _Crossing(plan, parts, chosen.site, elements, chosen.numbers).cross(*operands)

    return make_calls


class _Crossing:
    """What the crossings of one site with one schedule share; selected elements have their own.

    Args:
        plan: the plan.
        parts: the parts of the crossing.
        site: has the avals of the results together.
        schedule: the batch element of each call; None for a single call.
        numbers: the batch element of each call, or those of a single call; None: all.
    """

    def __init__(
        self,
        plan: CallPlan,
        parts: Parts,
        site: LoweredSite,
        schedule: Elements | None,
        numbers: Numbers | None,
    ) -> None:
        callback, lowered = plan.callback, plan.lowered
        self._recorder_now, self._lowered, self._schedule = plan.recorder_now, lowered, schedule
        self._host, self._options, self._adapt = callback.host, callback.options, parts.adapt
        self._pool = (
            None if isinstance(self._options.executor, str) else pool_of(self._options.executor)
        )
        self._order = np.array([-1], np.int32) if schedule is None else schedule.order
        self._outer = [aval.shape for aval in site.results]
        self._facts = facts_of(lowered, 0, numbers)
        self._keep = _copying(parts.check)
        self._new_collected = functools.partial(
            CollectedResults, self._order.size, _accepting_checked(parts.check), parts.shapes,
            parts.dtypes,
        )  # fmt: skip
        is_flat = takes_flat_operands(callback, len(lowered.passed))
        self._structured = None if is_flat else to_arguments(callback)

    def cross(self, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        """The function XLA calls. Other threads read its local variables, see `_code_owner`."""
        host, lowered, schedule = self._host, self._lowered, self._schedule
        refuse_call(lowered, host)
        recorder = self._recorder_now()
        before = host.calls
        host.calls = before + self._order.size
        collected, run = self._new_collected(), None
        guard = bytearray(b"\1")  # an interrupt clears it
        log = Log(recorder, lowered, host, self._order, before)
        try:
            run = self._run(operands, recorder, log, before)
            run.run(guard)
            stacked = collected.stack(run.results())
            if run.failed is not None:
                raise run.failed[1]
        except BaseException as error:
            if run is not None and is_a(error, KeyboardInterrupt, EndedError, NotCalledError):
                run.end_calls()
            call, is_known = collected.done, True  # whose result was refused
            if run is not None and run.failed is not None and run.failed[1] is error:
                call, is_known = run.failed[0], run.is_known
            log.end(call, error)
            element, arguments = None, operands
            if schedule is not None:
                is_known &= call < self._order.size
                element = int(self._order[call]) if is_known else None
                arguments = schedule.arguments(operands, call) if is_known else ()
            raise report_failure(error, lowered, before + call + 1, element, arguments) from None
        crossing = log.end()
        if recorder is not None:
            elements = [(-1, operands)] if schedule is None else schedule.numbered(operands)
            record_values(recorder, lowered, crossing, elements, stacked)
        return tuple(
            (array if schedule is None else schedule.by_element(array)).reshape(shape)
            for array, shape in zip(stacked, self._outer, strict=True)
        )

    def _run(
        self,
        operands: tuple[np.ndarray, ...],
        recorder: Recorder | None,
        log: Log,
        before: int,
    ) -> ChunkRun:
        host, options = self._host, self._options
        call = self._adapt(host.current)
        if recorder is not None and recorder.around is not None:
            call = recorder.around(self._lowered, call)
        plan = [(0, None)] * len(operands) if self._schedule is None else self._schedule.plan
        columns = [
            Column(operand.reshape((math.prod(operand.shape[:axes]), *operand.shape[axes:])), rows)
            if rows is not None
            else Column(operand)
            for operand, (axes, rows) in zip(operands, plan, strict=False)
        ]
        return ChunkRun(
            self._pool or pool_of(options.executor),
            Task(call, self._keep, functools.partial(pickled, host, options)),
            columns,
            self._structured,
            self._facts.after(before),
            log,
            options.chunksize,
            options.timeout,
        )


CROSS = _Crossing.cross.__code__
CROSSINGS.add(CROSS)
WAITING.add(CROSS)


def pickled(host: HostFunction, options: Options) -> bytes:
    """Pickle the host function for another process.

    Raises:
        TypeError: if it cannot be pickled; the message says why.
    """
    __tracebackhide__ = True
    check_can_be_sent(host.name, options)
    return _bytes_of(host.current, host.name, options)


def _bytes_of(value: Any, name: str, options: Options) -> bytes:
    __tracebackhide__ = True
    try:
        return needed("cloudpickle", options.spelled("executor")).dumps(value, 5)
    except ModuleNotFoundError:
        raise
    except Exception as error:
        raise TypeError(
            f"cannot send {name} to {options.spelled('executor')}: it cannot be pickled "
            f"({describe(error)}). Open files, locks and connections inside the function, or pass "
            "executor='threads'."
        ) from error


class _Checked(NamedTuple):
    """A result that was checked in the thread that called the host function."""

    arrays: tuple[np.ndarray, ...]


def _accepting_checked(check: ResultChecker) -> ResultChecker:
    return lambda returned: returned.arrays if type(returned) is _Checked else check(returned)


def _copying(check: ResultChecker) -> Callable[[Any], Any]:
    """Return a function that copies a result, because the host function may reuse its buffer."""

    def keep(returned: Any) -> Any:
        number = number_of(returned)
        if number is not None:
            return number
        if type(returned) is np.ndarray:
            return returned.copy()
        return _Checked(tuple(np.array(array) for array in check(returned)))

    return keep
