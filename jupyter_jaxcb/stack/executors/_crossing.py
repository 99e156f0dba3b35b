"""One crossing whose calls an executor makes."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jupyter_jaxcb_worker import Checked, Task, check_ended, number_of

from ...recording import LoweredSite, Recorder, active
from .. import dispatch
from ..core import CROSSINGS, WAITING, ExecutorOptions, HostCallback, HostFunction, describe
from ..dispatch import (
    Answers,
    Crossing,
    ElementSchedule,
    Parts,
    look_at_calls,
    refuse_call,
    report_failure,
    takes_flat_operands,
    telling_interrupts,
    to_arguments,
)
from ..results import ResultChecker, shown
from ._chunks import OperandSlices, element_cost_of
from ._engine import Engine
from ._engines import engine_of, needed
from ._log import Log
from ._run import SpreadRun


def build_crossing(
    callback: HostCallback,
    lowered: LoweredSite,
    operand_dtypes: Sequence[Any],
    result_dtypes: Sequence[Any],
) -> Crossing:
    """As `dispatch.build_crossing`, of a callback whose calls an executor may make.

    Raises:
        ExecutorError: the executor cannot be reached.
        TypeError: the function, or an argument of it, cannot be sent to it.
    """
    __tracebackhide__ = True
    spread = callback.spread
    if spread is None:
        return dispatch.build_crossing(callback, lowered, operand_dtypes, result_dtypes)
    engine = engine_of(spread)
    if engine.travels:
        pickled(callback.host, spread)
        for value in callback.static.values.values():
            _bytes_of(value, f"the argument {shown(value)} of {callback.host.name}", spread)
    parts = dispatch.parts_of_crossing(callback, lowered, operand_dtypes, result_dtypes)
    cross = _Crossing(callback, spread, lowered, parts, engine).cross
    return telling_interrupts(cross, lowered, callback.host)


class _Crossing:
    """What does not change from one crossing to the next."""

    def __init__(
        self,
        callback: HostCallback,
        spread: ExecutorOptions,
        lowered: LoweredSite,
        parts: Parts,
        engine: Engine,
    ) -> None:
        adapt, check, shapes, kinds = parts
        self._host, self._spread, self._lowered = callback.host, spread, lowered
        self._adapt, self._engine = adapt, engine
        self._schedule = None if lowered.elements is None else ElementSchedule(lowered)
        one = np.array([-1], np.int32)
        self.order = one if self._schedule is None else self._schedule.order
        self._outer = [aval.shape for aval in lowered.results]
        self._new_answers = functools.partial(
            Answers, self.order.size, _opening(check), shapes, kinds
        )
        self._keep, self._structured = _keeping(check), None
        if not takes_flat_operands(callback, len(lowered.operands)):
            self._structured = to_arguments(callback)
        self._collect = self._numbers = None
        if shapes == [()] and kinds[0].kind in "biufc":
            self._collect, self._numbers = functools.partial(_numbers, check, kinds), kinds[0]

    def cross(self, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
        """What XLA calls; `guard` and others are read from other threads, see `_code_owner`."""
        host, lowered, schedule = self._host, self._lowered, self._schedule
        refuse_call(lowered, host)
        recorder = active()
        before = host.calls
        host.calls = before + self.order.size
        answers, run = self._new_answers(), None
        guard = bytearray(b"\1")  # an interrupt takes it away
        log = Log(recorder, lowered, host, self.order)
        try:
            run = self._run(operands, recorder, guard, log)
            stacked = answers.stack(run.answers())
        except BaseException as error:
            failed = answers.done if run is None or run.failed is None else run.failed
            log.end(failed, error)
            element = int(self.order[failed]) if schedule and failed < self.order.size else None
            raise report_failure(error, lowered, before + failed + 1, element) from None
        crossing = log.end()
        if recorder is not None:
            elements = [(-1, operands)] if schedule is None else schedule.numbered(operands)
            look_at_calls(recorder, lowered, crossing, elements, stacked)
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
    ) -> SpreadRun:
        host, spread = self._host, self._spread
        call = self._adapt(host.current)
        if recorder is not None and recorder.around is not None:
            call = recorder.around(self._lowered, call)
        task = Task(
            call,
            self._keep,
            functools.partial(pickled, host, spread),
            near=self._engine.near,
            collect=self._collect,
            numbers=self._numbers,
        )
        return SpreadRun(
            engine_of(spread) if isinstance(spread.executor, str) else self._engine,
            task,
            OperandSlices(operands, self._schedule, near=self._engine.near),
            spread,
            element_cost_of(host),
            guard,
            clock=time.perf_counter_ns if recorder is None else recorder.clock,
            stamped=recorder is not None,
            structured=self._structured,
            heard=log.heard,
        )


CROSS = _Crossing.cross.__code__
CROSSINGS.add(CROSS)
WAITING.add(CROSS)


def pickled(host: HostFunction, spread: ExecutorOptions) -> bytes:
    """The host function, as bytes for another process.

    Raises:
        TypeError: it cannot be sent; says why.
    """
    __tracebackhide__ = True
    return _bytes_of(host.current, host.name, spread)


def _bytes_of(value: Any, name: str, spread: ExecutorOptions) -> bytes:
    __tracebackhide__ = True
    try:
        return needed("cloudpickle").dumps(value, 5)
    except ModuleNotFoundError:
        raise
    except Exception as error:
        raise TypeError(
            f"cannot send {name} to {spread.word}: it cannot be pickled "
            f"({describe(error)}). What a host function refers to has to travel with "
            "it: open files, locks and connections inside of it, or pass executor='threads'."
        ) from error


def _numbers(
    check: ResultChecker, kinds: Sequence[np.dtype], count: int, calls: Iterator[Any]
) -> tuple[Any, BaseException | None]:
    """The answers of some calls that answer with one number, and what the next one raised."""
    own = Answers(count, check, [()], kinds)
    try:
        (array,) = own.stack(calls)
        check_ended(own.done, count)
    except BaseException as error:
        return own.so_far()[0], error
    return array, None


def _opening(check: ResultChecker) -> ResultChecker:
    """`check`, also for an answer that has been checked where it was made."""
    return lambda answer: answer.arrays if type(answer) is Checked else check(answer)


def _keeping(check: ResultChecker) -> Callable[[Any], Any]:
    """Makes of an answer what stays as it is: a host function may use one buffer again."""

    def keep(answer: Any) -> Any:
        number = number_of(answer)
        if number is not None:
            return number
        if type(answer) is np.ndarray:
            return answer.copy()
        return Checked(tuple(np.array(array) for array in check(answer)))

    return keep
