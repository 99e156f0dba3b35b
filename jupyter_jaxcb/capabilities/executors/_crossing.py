"""One crossing whose host calls run in an executor."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jupyter_jaxcb_worker import Checked, Numbers, Task, check_ended, number_of

from ...recording import LoweredSite, Recorder
from ...stack.call import HostFunction
from ...stack.dispatch import (
    CallPlan,
    CollectedResults,
    Crossing,
    Elements,
    ElementSchedule,
    MakeCalls,
    Parts,
    Selection,
    Stage,
    decides,
    facts_of,
    parts_of_crossing,
    record_values,
    reporting_interrupts,
    takes_flat_operands,
    to_arguments,
)
from ...stack.errors import EndedError, describe, is_a
from ...stack.interrupt import refuse_call, report_failure
from ...stack.options import Options
from ...stack.results import ResultChecker, shown
from ...stack.trace import CROSSINGS, WAITING
from ._chunks import OperandSlices, element_cost_of
from ._engine import Engine
from ._engines import engine_of, needed
from ._flight import Log
from ._options import check_can_be_sent
from ._run import SpreadRun


@decides(Stage.WHERE, lambda callback: callback.options.executor is not None)
def build_spread_crossing(plan: CallPlan) -> Crossing:
    """Build a crossing that runs the host calls in the callback's executor.

    Raises:
        ExecutorError: if the executor cannot be reached.
        TypeError: if the function or one of its arguments cannot be pickled.
    """
    __tracebackhide__ = True
    callback, lowered, options = plan.callback, plan.lowered, plan.callback.options
    engine = engine_of(options.executor)
    if engine.travels:
        pickled(callback.host, options)
        for value in callback.static.values.values():
            _bytes_of(value, f"the argument {shown(value)} of {callback.host.name}", options)
    select = plan.selection()
    if select is not None:
        return select.crossing(_calls_for_selected(plan, engine))
    parts = parts_of_crossing(
        callback, lowered, plan.operand_dtypes, plan.result_dtypes, plan.entry()
    )
    schedule = None if lowered.elements is None else ElementSchedule(lowered)
    crossing = _Crossing(plan, engine, parts, lowered, schedule, _numbers(lowered, schedule))
    return reporting_interrupts(crossing.cross, lowered, callback.host)


def _numbers(lowered: LoweredSite, schedule: Elements | None) -> Numbers | None:
    """Return the batch element of each call: a range, which is small to send, if it is one."""
    if schedule is None:
        return None
    return schedule.order if len(lowered.levels) > 1 else range(schedule.size)


def _calls_for_selected(plan: CallPlan, engine: Engine) -> MakeCalls:
    """Return what makes the host calls for selected batch elements."""

    def make_calls(
        parts: Parts, chosen: Selection, operands: Sequence[np.ndarray], recorder: Recorder | None
    ) -> tuple[np.ndarray, ...]:
        elements = chosen if isinstance(chosen, Elements) else None
        crossing = _Crossing(plan, engine, parts, chosen.site, elements, chosen.numbers)
        return crossing.cross(*operands)

    return make_calls


class _Crossing:
    """What the crossings of one site with one schedule share; selected elements have their own.

    Args:
        plan: the plan.
        engine: the executor.
        parts: the parts of the crossing.
        site: has the avals of the results together.
        schedule: the batch element of each call; None for a single call.
        numbers: the batch element of each call, or those of a single call; None: all.
    """

    def __init__(
        self,
        plan: CallPlan,
        engine: Engine,
        parts: Parts,
        site: LoweredSite,
        schedule: Elements | None,
        numbers: Numbers | None,
    ) -> None:
        adapt, check, shapes, kinds = parts
        callback, lowered = plan.callback, plan.lowered
        self._recorder_now = plan.recorder_now
        self._host, self._options, self._lowered = callback.host, callback.options, lowered
        self._adapt, self._engine, self._schedule = adapt, engine, schedule
        one = np.array([-1], np.int32)
        self.order = one if schedule is None else schedule.order
        self._outer = [aval.shape for aval in site.results]
        self._facts = facts_of(lowered, 0, numbers)
        self._new_collected = functools.partial(
            CollectedResults, self.order.size, _accepting_checked(check), shapes, kinds
        )
        self._keep, self._structured = _copying(check), None
        if not takes_flat_operands(callback, len(lowered.passed)):
            self._structured = to_arguments(callback)
        self._collect = self._numbers = None
        if shapes == [()] and kinds[0].kind in "biufc":
            self._collect, self._numbers = (
                functools.partial(_collect_numbers, check, kinds),
                kinds[0],
            )

    def cross(self, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        """The function XLA calls. Other threads read its local variables, see `_code_owner`."""
        host, lowered, schedule = self._host, self._lowered, self._schedule
        refuse_call(lowered, host)
        recorder = self._recorder_now()
        before = host.calls
        host.calls = before + self.order.size
        collected, run = self._new_collected(), None
        guard = bytearray(b"\1")  # an interrupt clears it
        log = Log(recorder, lowered, host, self.order)
        try:
            run = self._run(operands, recorder, guard, log, before)
            stacked = collected.stack(run.results())
        except BaseException as error:
            if run is not None and is_a(error, KeyboardInterrupt, EndedError):
                run.end_workers()
                _note_left(
                    {"self": self, "recorder": recorder, "lowered": lowered, "host": host,
                     "before": before, "run": run}
                )  # fmt: skip
            failed = collected.done if run is None or run.failed is None else run.failed
            log.end(failed, error)
            element = int(self.order[failed]) if schedule and failed < self.order.size else None
            arguments = schedule.arguments(operands, failed) if schedule else operands
            raise report_failure(error, lowered, before + failed + 1, element, arguments) from None
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
        guard: bytearray,
        log: Log,
        before: int,
    ) -> SpreadRun:
        host, options = self._host, self._options
        call = self._adapt(host.current)
        if recorder is not None and recorder.around is not None:
            call = recorder.around(self._lowered, call)
        task = Task(
            call,
            self._keep,
            functools.partial(pickled, host, options),
            near=self._engine.near,
            collect=self._collect,
            numbers=self._numbers,
        )
        return SpreadRun(
            engine_of(options.executor) if isinstance(options.executor, str) else self._engine,
            task,
            OperandSlices(operands, self._schedule, near=self._engine.near),
            options,
            element_cost_of(host),
            guard,
            clock=time.perf_counter_ns if recorder is None else recorder.clock,
            stamped=recorder is not None,
            structured=self._structured,
            record=log.record,
            facts=self._facts.after(before),
        )


def _note_left(names: Mapping[str, Any]) -> None:
    """Note a crossing that an interrupt ended, by its local variables, while workers are in it."""
    LEFT[:] = [left for left in (*LEFT, names) if left["run"].is_running()]


LEFT: list[Mapping[str, Any]] = []
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


def _collect_numbers(
    check: ResultChecker, kinds: Sequence[np.dtype], count: int, calls: Iterator[Any]
) -> tuple[Any, BaseException | None]:
    """Collect the results of calls that return one number, and the exception that ended them."""
    own = CollectedResults(count, check, [()], kinds)
    try:
        (array,) = own.stack(calls)
        check_ended(own.done, count)
    except BaseException as error:
        return own.so_far()[0], error
    return array, None


def _accepting_checked(check: ResultChecker) -> ResultChecker:
    """Wrap `check` to accept results that the worker has already checked."""
    return lambda returned: returned.arrays if type(returned) is Checked else check(returned)


def _copying(check: ResultChecker) -> Callable[[Any], Any]:
    """Return a function that copies a result, because the host function may reuse its buffer."""

    def keep(returned: Any) -> Any:
        number = number_of(returned)
        if number is not None:
            return number
        if type(returned) is np.ndarray:
            return returned.copy()
        return Checked(tuple(np.array(array) for array in check(returned)))

    return keep
