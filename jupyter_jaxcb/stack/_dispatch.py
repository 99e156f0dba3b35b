"""One crossing: arrays in, host function, contract, arrays out, record, error.

This is the path of every host call. It never calls JAX on arrays, holds no lock while user
code runs, and keeps no reference to what passes through.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.tree_util import tree_structure, tree_unflatten

from ..recording import LoweredSite, active
from ._callback import HostCallback
from ._contract import answer_checker
from ._errors import explain
from ._lanes import LaneError, LaneSchedule, stack_answers

Crossing = Callable[..., tuple[np.ndarray, ...]]


def build_crossing(callback: HostCallback, lowered: LoweredSite, dtypes: Sequence[Any]) -> Crossing:
    """The function XLA calls: numpy arrays in, a tuple of numpy arrays out.

    Args:
        callback: the host function and its trees.
        lowered: the site this is the crossing of; host calls are recorded under it.
        dtypes: of the results, as numpy dtypes.
    """
    _, results = lowered.host_avals()
    check = answer_checker(
        callback.host.name, callback.out_tree, [aval.shape for aval in results], dtypes
    )
    if lowered.lanes is None:
        return _single(callback, lowered, check)
    return _looped(callback, lowered, check, dtypes)


def _single(callback: HostCallback, lowered: LoweredSite, check: Callable) -> Crossing:
    host = callback.host
    adapt = _adapting(callback, len(lowered.operands))

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        recorder = active()
        if recorder is None:
            try:
                return check(adapt(host.current)(*operands))
            except BaseException as error:
                raise explain(error, lowered, None) from None
        version = host.version
        start = recorder.clock()
        try:
            answer = adapt(host.current)(*operands)
            end = recorder.clock()
            arrays = check(answer)
        except BaseException as error:
            recorder.called(lowered, version, start, recorder.clock(), _describe(error))
            raise explain(error, lowered, None) from None
        recorder.called(lowered, version, start, end)
        return arrays

    return cross


def _looped(
    callback: HostCallback, lowered: LoweredSite, check: Callable, dtypes: Sequence[Any]
) -> Crossing:
    host = callback.host
    adapt = _adapting(callback, len(lowered.operands))
    schedule = LaneSchedule(lowered)
    _, results = lowered.host_avals()
    inner = [aval.shape for aval in results]
    outer = [aval.shape for aval in lowered.results]

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        recorder = active()
        version = host.version
        answers: list[Any] = []
        stamps: list[int] = []
        calls = itertools.starmap(adapt(host.current), schedule.lanes(operands))
        try:
            if recorder is None:
                _run(calls, answers, check)
            else:
                _run_stamped(calls, answers, check, stamps, recorder.clock)
            stacked = stack_answers(answers, check, inner, dtypes)
        except BaseException as error:
            failed, cause = len(answers), error
            if isinstance(error, LaneError):
                failed, cause = error.call, error.error
            elif recorder is not None and len(stamps) == failed + 1:
                stamps.append(recorder.clock())  # the host function itself raised
            if recorder is not None:
                recorder.called_lanes(
                    lowered, version, schedule.order, stamps, failed, _describe(cause)
                )
            raise explain(cause, lowered, int(schedule.order[failed])) from None
        if recorder is not None and answers:
            recorder.called_lanes(lowered, version, schedule.order, stamps)
        return tuple(
            schedule.by_lane(array).reshape(shape)
            for array, shape in zip(stacked, outer, strict=True)
        )

    return cross


def _run(calls: Iterator[Any], answers: list[Any], check: Callable[[Any], Any]) -> None:
    """Runs all calls; the loop is C's, so a lane costs little more than the host function."""
    # The first answer alone: a function that breaks its contract is not called on and on.
    for answer in itertools.islice(calls, 1):
        check(answer)
        answers.append(answer)
    answers.extend(calls)


def _run_stamped(
    calls: Iterator[Any],
    answers: list[Any],
    check: Callable[[Any], Any],
    stamps: list[int],
    clock: Callable[[], int],
) -> None:
    """Runs all calls, noting the clock before the first and after each one."""
    stamp, keep = stamps.append, answers.append
    stamp(clock())
    for answer in itertools.islice(calls, 1):
        stamp(clock())
        check(answer)
        keep(answer)
    for answer in calls:
        stamp(clock())
        keep(answer)


def _adapting(callback: HostCallback, count: int) -> Callable[[Callable], Callable]:
    """From the host function to one of flat operands: the same one, if its arguments are flat."""
    in_tree = callback.in_tree
    static = callback.static.values
    if not static and in_tree == tree_structure(((0,) * count, {})):
        return lambda function: function

    def adapt(function: Callable) -> Callable:
        def call(*operands: np.ndarray) -> Any:
            leaves: Any = operands
            if static:
                arrays = iter(operands)
                places = range(in_tree.num_leaves)
                leaves = [static[i] if i in static else next(arrays) for i in places]
            args, kwargs = tree_unflatten(in_tree, leaves)
            return function(*args, **kwargs)

        return call

    return adapt


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
