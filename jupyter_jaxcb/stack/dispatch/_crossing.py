"""One crossing: arrays in, host function, contract, arrays out, record, error.

This is the path of every host call. It never calls JAX on arrays (unless the user asked for JAX
arrays), holds no lock while user code runs, and keeps no reference to what passes through.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from jupyter_jaxcb_worker import check_ended

from ...recording import LoweredSite, Recorder, active
from ..core import HostCallback, HostFunction, aligning, describe, is_big, taking_jax_arrays
from ..errors import HostCallError, NotCalledError
from ..results import ResultChecker, exact_checker, result_checker
from . import _interrupts
from ._arguments import Adapt, adapting
from ._elements import Answers, ElementSchedule
from ._failure import report_failure
from ._finite import Finite, finite_checker, is_finite, look_at_calls, note_not_finite
from ._interrupts import NOT_CALLED, elements_left, refuse_call

Crossing = Callable[..., tuple[np.ndarray, ...]]
# `build_crossing`, or what a flavor has in its place.
Build = Callable[[HostCallback, LoweredSite, Sequence[Any], Sequence[Any]], Crossing]


class Stacking(Protocol):
    """What becomes of the calls of one crossing over batch elements, see `Answers`."""

    done: int

    def so_far(self) -> list[np.ndarray]: ...

    def stack(self, calls: Iterator[Any]) -> list[np.ndarray]: ...


class Parts(NamedTuple):
    """What a crossing is made of.

    Attributes:
        adapt: from the host function to one of flat operands.
        check: from an answer to the arrays that XLA gets; raises where it does not fit.
        shapes: of the results of one host call.
        dtypes: of the results.
    """

    adapt: Adapt
    check: ResultChecker
    shapes: list[tuple[int, ...]]
    dtypes: list[np.dtype]


def parts_of_crossing(
    callback: HostCallback,
    lowered: LoweredSite,
    operand_dtypes: Sequence[Any],
    result_dtypes: Sequence[Any],
) -> Parts:
    """What a crossing is made of, wherever its host calls are made; see `build_crossing`."""
    operands, results = lowered.host_avals()
    shapes = [aval.shape for aval in results]
    declared = callback.host.name, callback.out_tree, shapes, result_dtypes
    if callback.exact:
        check = exact_checker(*declared)
    else:
        batch = tuple(level.size for level in reversed(lowered.levels) if not level.looped)
        check = result_checker(*declared, cast=callback.cast, batch=batch)
    adapt = adapting(callback, len(lowered.operands))
    if callback.arrays == "jax":
        adapt = _taking_jax_arrays(adapt, operand_dtypes, lowered.site.flavor)
    if any(map(is_big, operands, operand_dtypes)):
        adapt = aligning(adapt)
    return Parts(adapt, check, shapes, [np.dtype(dtype) for dtype in result_dtypes])


def build_crossing(
    callback: HostCallback,
    lowered: LoweredSite,
    operand_dtypes: Sequence[Any],
    result_dtypes: Sequence[Any],
) -> Crossing:
    """The function XLA calls: numpy arrays in, a tuple of numpy arrays out.

    Args:
        callback: the host function and its trees.
        lowered: the site this is the crossing of; host calls are recorded under it.
        operand_dtypes: as JAX's avals have them.
        result_dtypes: as numpy dtypes.
    """
    adapt, check, shapes, dtypes = parts_of_crossing(
        callback, lowered, operand_dtypes, result_dtypes
    )
    if lowered.elements is None:
        finite = finite_checker(shapes, dtypes)
        return single_call(callback.host, lowered, adapt, check, finite)
    answers = functools.partial(Answers, lowered.elements, check, shapes, dtypes)
    return looped_calls(callback.host, lowered, adapt, ElementSchedule(lowered), answers)


def telling_interrupts(
    cross: Callable[..., Any], lowered: LoweredSite, host: HostFunction
) -> Callable[..., Any]:
    """`cross`; an interrupt between its own instructions is told as one of a host call.

    Not at the very first instruction: of that one XLA makes an error of its own, unless who handles
    the signal sees to it, see `_failure.pass_on`.
    """

    def enter(*operands: Any) -> Any:
        try:
            return cross(*operands)
        except HostCallError:
            raise
        except BaseException as error:
            raise report_failure(error, lowered, host.calls) from None

    return enter


def crossings_by_shard(
    lowered: LoweredSite, devices: Sequence[str], build: Callable[[LoweredSite], Crossing]
) -> Callable[[int], Crossing]:
    """The crossing of each shard by its number: what `build` makes of the shard's own fact."""
    crossings: dict[int, Crossing] = {}

    def of_shard(shard: int) -> Crossing:
        own = crossings.get(shard)
        if own is None:
            device = devices[shard] if shard < len(devices) else ""
            fact = dataclasses.replace(lowered, shard=shard, device=device)
            own = crossings.setdefault(shard, build(fact))
        return own

    return of_shard


def single_call(
    host: HostFunction,
    lowered: LoweredSite,
    adapt: Adapt,
    check: Callable,
    finite: Finite | None,
) -> Crossing:
    """A crossing that makes one host call.

    Args:
        host: the host function.
        lowered: the site.
        adapt: from the host function to one of flat operands.
        check: from an answer to the arrays that XLA gets; raises where it does not fit.
        finite: whether these are finite; None: they are, or nobody needs to know.
    """

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        number = None
        try:
            if _interrupts.window is not None:
                refuse_call(lowered, host)
            host.calls = number = host.calls + 1
            recorder = active()
            if recorder is None:
                return check(adapt(host.current)(*operands))
            if host.replaced:
                recorder.stale(lowered)
            version = host.version
            call = adapt(host.current)
            if recorder.around is not None:
                call = recorder.around(lowered, call)
            start = recorder.clock()
            try:
                answer = call(*operands)
                end = recorder.clock()
                arrays = check(answer)
            except BaseException as error:
                crossing = recorder.called(
                    lowered, version, start, recorder.clock(), describe(error)
                )
                recorder.values.take(lowered, crossing, -1, operands, (), failed=True)
                raise
            crossing = recorder.called(lowered, version, start, end)
            if lowered not in recorder.values.full:
                recorder.values.take(lowered, crossing, -1, operands, arrays)
                sound = all(map(is_finite, arrays))
            else:
                sound = finite is None or finite(arrays)
            if not sound:
                note_not_finite(recorder, lowered, operands)
            return arrays
        except HostCallError:
            raise
        except BaseException as error:  # the host function's, or an interrupt of all of this
            raise report_failure(error, lowered, number or host.calls) from None

    return cross


def looped_calls(
    host: HostFunction,
    lowered: LoweredSite,
    adapt: Adapt,
    schedule: ElementSchedule,
    new_answers: Callable[[], Stacking],
) -> Crossing:
    """A crossing that makes a host call for each batch element, see `single_call`."""
    order = schedule.order
    outer = [aval.shape for aval in lowered.results]

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        if _interrupts.window is not None:
            refuse_call(lowered, host)
        recorder = active()
        if recorder is not None and host.replaced:
            recorder.stale(lowered)
        before = host.calls
        host.calls = before + order.size
        answers = new_answers()
        call = adapt(host.current)
        guard = bytearray(b"\1") * order.size
        elements = itertools.compress(schedule.elements(operands), guard)
        if recorder is not None:  # which has to know before all else; it costs time
            elements = itertools.chain(elements, elements_left(guard, order.size))
            if recorder.around is not None:
                call = recorder.around(lowered, call)
        calls = itertools.starmap(call, elements)
        try:
            if recorder is None:
                stacked = answers.stack(calls)
                if not guard and answers.done < order.size:
                    raise NotCalledError(NOT_CALLED)
                check_ended(answers.done, order.size)
            else:
                stacked = _stack_recorded(
                    answers, calls, recorder, lowered, host.version, schedule, operands
                )
        except BaseException as error:
            element = int(order[answers.done]) if answers.done < order.size else None
            number = before + answers.done + 1
            host.calls -= max(order.size - answers.done - 1, 0)  # that were not made
            raise report_failure(error, lowered, number, element) from None
        return tuple(
            schedule.by_element(array).reshape(shape)
            for array, shape in zip(stacked, outer, strict=True)
        )

    return telling_interrupts(cross, lowered, host)


def _stack_recorded(
    answers: Stacking,
    calls: Iterator[Any],
    recorder: Recorder,
    lowered: LoweredSite,
    version: int,
    schedule: ElementSchedule,
    operands: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """As `answers.stack`, with the calls logged, and some of their values kept."""
    elements = schedule.numbered(operands)
    stamps = [recorder.clock()]
    try:
        stacked = answers.stack(_stamped(calls, recorder.clock, stamps.append))
        check_ended(answers.done, schedule.order.size)
    except BaseException as error:
        failed = answers.done
        # Not a wrong answer: the call itself raised, or was not made. An interrupt may come after
        # the last one.
        raised = len(stamps) == failed + 1 <= schedule.order.size
        if raised and not isinstance(error, NotCalledError):
            stamps.append(recorder.clock())
        crossing = recorder.called_elements(
            lowered, version, schedule.order, stamps, failed, describe(error)
        )
        look_at_calls(
            recorder, lowered, crossing, itertools.islice(elements, failed), answers.so_far()
        )
        made = len(stamps) - 1
        for element, arguments in itertools.islice(schedule.numbered(operands), failed, made):
            recorder.values.take(lowered, crossing, element, arguments, (), failed=True)
        raise
    crossing = recorder.called_elements(lowered, version, schedule.order, stamps)
    look_at_calls(recorder, lowered, crossing, elements, stacked)
    return stacked


def _stamped(
    calls: Iterator[Any], clock: Callable[[], int], stamp: Callable[[int], None]
) -> Iterator[Any]:
    """`calls`, with the clock after each one."""
    for answer in calls:
        stamp(clock())
        yield answer


def _taking_jax_arrays(adapt: Adapt, dtypes: Sequence[Any], flavor: str) -> Adapt:
    taking = taking_jax_arrays(dtypes, without_mesh=flavor == "debug")
    return lambda function: taking(adapt(function))
