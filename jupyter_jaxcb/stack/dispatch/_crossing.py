"""One crossing: arrays in, host function, result check, arrays out, recording, errors.

Every host call takes this path. It never calls JAX on arrays (unless the user asked for JAX
arrays), holds no lock while user code runs, and keeps no reference to the arrays.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from threading import get_ident
from typing import Any, NamedTuple, Protocol

import numpy as np

from jupyter_jaxcb_worker import check_ended

from ...recording import NOT_PLAIN, LoweredSite, Recorder, active, record_call, record_elements
from ..call import HostCallback, HostFunction, aligning, is_big, taking_jax_arrays
from ..errors import HostCallError, NotCalledError, describe, is_a
from ..interrupt import NOT_CALLED, elements_left, refusal, refuse_call, report_failure
from ..results import (
    ResultChecker,
    any_structure_checker,
    result_checker,
    undeclared,
)
from ._arguments import Adapt, adapting
from ._elements import CollectedResults, Elements, ElementSchedule
from ._entry import starts_unchecked
from ._finite import (
    Finite,
    finite_checker,
    first_is_finite,
    is_finite,
    note_not_finite,
    record_values,
)

Crossing = Callable[..., tuple[np.ndarray, ...]]


class Stacking(Protocol):
    """Makes the calls of one looped crossing and stacks their results, see `CollectedResults`."""

    @property
    def done(self) -> int: ...

    def so_far(self) -> list[np.ndarray]: ...

    def stack(self, calls: Iterator[Any]) -> list[np.ndarray]: ...


class Parts(NamedTuple):
    """The parts of a crossing.

    Attributes:
        adapt: wraps the host function to take flat operands.
        check: turns a return value into the arrays XLA gets; raises if it does not fit.
        shapes: the result shapes of one host call.
        dtypes: the result dtypes.
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
    entry: Adapt | None = None,
) -> Parts:
    """Build the parts of a crossing, which do not depend on where the host calls run.

    `entry` takes the place of `adapt` for a function that is called in another way.
    """
    operands, results = lowered.host_avals()
    shapes = [aval.shape for aval in results]
    batch = tuple(level.size for level in reversed(lowered.levels) if not level.looped)
    check = checker_of(callback, lowered, shapes, result_dtypes, batch)
    adapt = adapting(callback, len(operands))
    if callback.options.arrays == "jax":
        adapt = _taking_jax_arrays(adapt, operand_dtypes[: len(operands)])
    if any(map(is_big, operands, operand_dtypes)):
        adapt = aligning(adapt)
    return Parts(entry or adapt, check, shapes, [np.dtype(dtype) for dtype in result_dtypes])


def checker_of(
    callback: HostCallback,
    lowered: LoweredSite,
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[Any],
    batch: tuple[int, ...],
) -> ResultChecker:
    """Return a checker for results of certain shapes, which begin with the axes `batch`."""
    declared = callback.host.name, callback.out_tree, shapes, dtypes
    if callback.exact:
        return result_checker(*declared, exact=True)
    options: dict[str, Any] = {"cast": callback.options.cast, "batch": batch}
    if callback.any_structure:
        return any_structure_checker(*declared, site=lowered.site, **options)
    check = result_checker(*declared, **options)
    because = callback.host.because
    return undeclared(check, because) if because else check


def build_crossing(
    callback: HostCallback,
    lowered: LoweredSite,
    operand_dtypes: Sequence[Any],
    result_dtypes: Sequence[Any],
    entry: Adapt | None = None,
    recorder_now: Callable[[], Recorder | None] = active,
) -> Crossing:
    """Build the function XLA calls: NumPy arrays in, a tuple of NumPy arrays out.

    Args:
        callback: the host function and its trees.
        lowered: the lowered site under which host calls are recorded.
        operand_dtypes: the operand dtypes, as in JAX's avals.
        result_dtypes: the result dtypes, as NumPy dtypes.
        entry: wraps the host function to take flat operands, in place of `adapting`.
        recorder_now: returns the recorder of one crossing.
    """
    adapt, check, shapes, dtypes = parts_of_crossing(
        callback, lowered, operand_dtypes, result_dtypes, entry
    )
    elements = lowered.elements
    if elements is None:
        finite = finite_checker(shapes, dtypes)
        return single_call(callback.host, lowered, adapt, check, finite, recorder_now)
    collected = functools.partial(CollectedResults, elements, check, shapes, dtypes)
    schedule = ElementSchedule(lowered)
    return looped_calls(callback.host, lowered, adapt, schedule, collected, recorder_now)


@starts_unchecked("enter")
def reporting_interrupts(
    cross: Callable[..., Any], lowered: LoweredSite, host: HostFunction
) -> Callable[..., Any]:
    """Wrap `cross` so that an interrupt anywhere in it is reported like one in a host call."""

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
    """Return a function from a shard number to its crossing, built and recorded per shard."""
    crossings: dict[int, Crossing] = {}

    def of_shard(shard: int) -> Crossing:
        own = crossings.get(shard)
        if own is None:
            device = devices[shard] if shard < len(devices) else ""
            fact = dataclasses.replace(lowered, shard=shard, device=device)
            own = crossings.setdefault(shard, build(fact))
        return own

    return of_shard


@starts_unchecked("cross")
def single_call(
    host: HostFunction,
    lowered: LoweredSite,
    adapt: Adapt,
    check: Callable,
    finite: Finite | None,
    recorder_now: Callable[[], Recorder | None] = active,
) -> Crossing:
    """Build a crossing that makes one host call.

    Args:
        host: the host function.
        lowered: the site.
        adapt: wraps the host function to take flat operands.
        check: turns a return value into the arrays XLA gets; raises if it does not fit.
        finite: returns whether those arrays are finite; None if there is nothing to check.
        recorder_now: returns the recorder of one crossing.
    """
    one_number = finite is first_is_finite

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        number = None
        try:
            if refusal.until is not None:
                refuse_call(lowered, host)
            host.calls = number = host.calls + 1
            recorder = recorder_now()
            if recorder is None:
                return check(adapt(host.current)(*operands))
            plain = recorder.plain
            thread, times, full, version, clock = plain.get(lowered, NOT_PLAIN)
            call = adapt(host.current)
            is_plain = thread == get_ident()
            if not is_plain:
                version, clock = host.version, recorder.clock
                if host.replaced:
                    recorder.stale(lowered)
                if recorder.around is not None:
                    call = recorder.around(lowered, call)
            start = clock()
            try:
                returned = call(*operands)
                end = clock()
                arrays = check(returned)
            except BaseException as error:
                crossing = record_call(recorder, lowered, version, start, clock(), describe(error))
                recorder.values.take(lowered, crossing, -1, operands, (), group="failed")
                raise
            if is_plain:
                times.extend((start, end))
                if len(times) >= full:
                    recorder.plain_called(times)
                sound = isfinite(arrays[0]) if one_number else finite is None or finite(arrays)
            else:
                crossing = record_call(recorder, lowered, version, start, end)
                if lowered not in recorder.values.full:
                    recorder.values.take(lowered, crossing, -1, operands, arrays)
                    sound = all(map(is_finite, arrays))
                else:
                    sound = finite is None or finite(arrays)
                    if recorder.around is None and not host.replaced:
                        recorder.make_plain(lowered, version, plain)
            if not sound:
                note_not_finite(recorder, lowered, start, operands, arrays)
            return arrays
        except HostCallError:
            raise
        except BaseException as error:  # from the host function, or an interrupt of this function
            raise report_failure(error, lowered, number or host.calls, arguments=operands) from None

    return cross


def looped_calls(
    host: HostFunction,
    lowered: LoweredSite,
    adapt: Adapt,
    schedule: Elements,
    new_collected: Callable[[], Stacking],
    recorder_now: Callable[[], Recorder | None] = active,
) -> Crossing:
    """Build a crossing that makes a host call for each batch element, see `single_call`."""
    order = schedule.order
    outer = [aval.shape for aval in lowered.results]

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        if refusal.until is not None:
            refuse_call(lowered, host)
        recorder = recorder_now()
        if recorder is not None and host.replaced:
            recorder.stale(lowered)
        before = host.calls
        host.calls = before + order.size
        collected = new_collected()
        call = adapt(host.current)
        guard = bytearray(b"\1") * order.size
        elements = itertools.compress(schedule.elements(operands), guard)
        if recorder is not None:  # raise before an interrupted loop is recorded; costs time
            elements = itertools.chain(elements, elements_left(guard, order.size))
            if recorder.around is not None:
                call = recorder.around(lowered, call)
        calls = itertools.starmap(call, elements)
        try:
            if recorder is None:
                stacked = collected.stack(calls)
                if not guard and collected.done < order.size:
                    raise NotCalledError(NOT_CALLED)
                check_ended(collected.done, order.size)
            else:
                stacked = _stack_recorded(
                    collected, calls, recorder, lowered, host.version, schedule, operands
                )
        except BaseException as error:
            element = int(order[collected.done]) if collected.done < order.size else None
            number = before + collected.done + 1
            host.calls -= max(order.size - collected.done - 1, 0)  # calls that were not made
            raise report_failure(
                error, lowered, number, element, schedule.arguments(operands, collected.done)
            ) from None
        return tuple(
            schedule.by_element(array).reshape(shape)
            for array, shape in zip(stacked, outer, strict=True)
        )

    return reporting_interrupts(cross, lowered, host)


def _stack_recorded(
    collected: Stacking,
    calls: Iterator[Any],
    recorder: Recorder,
    lowered: LoweredSite,
    version: int,
    schedule: Elements,
    operands: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """As `collected.stack`, but records the calls and some of their values."""
    elements = schedule.numbered(operands)
    stamps = [recorder.clock()]
    try:
        stacked = collected.stack(_stamped(calls, recorder.clock, stamps.append))
        check_ended(collected.done, schedule.order.size)
    except BaseException as error:
        failed = collected.done
        # Without a stamp for the failed call, the call itself raised or was not made: its result
        # was not wrong. An interrupt may arrive after the last call.
        raised = len(stamps) == failed + 1 <= schedule.order.size
        if raised and not is_a(error, NotCalledError):
            stamps.append(recorder.clock())
        crossing = record_elements(
            recorder, lowered, version, schedule.order, stamps, failed, describe(error)
        )
        record_values(
            recorder, lowered, crossing, itertools.islice(elements, failed), collected.so_far()
        )
        made = len(stamps) - 1
        for element, arguments in itertools.islice(schedule.numbered(operands), failed, made):
            recorder.values.take(lowered, crossing, element, arguments, (), group="failed")
        raise
    crossing = record_elements(recorder, lowered, version, schedule.order, stamps)
    record_values(recorder, lowered, crossing, elements, stacked)
    return stacked


def _stamped(
    calls: Iterator[Any], clock: Callable[[], int], stamp: Callable[[int], None]
) -> Iterator[Any]:
    """Yield from `calls`, and read the clock after each."""
    for returned in calls:
        stamp(clock())
        yield returned


def _taking_jax_arrays(adapt: Adapt, dtypes: Sequence[Any]) -> Adapt:
    taking = taking_jax_arrays(dtypes)
    return lambda function: taking(adapt(function))
