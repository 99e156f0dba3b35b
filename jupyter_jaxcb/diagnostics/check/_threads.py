"""Check that a function with ``executor="threads"`` may be called in several threads at once."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np

from ...capabilities.executors import engine_of, leaves_process
from ...recording import Finding
from ...stack.call import option
from ...stack.trace import is_machinery
from ._compare import REPEATED, difference
from ._subject import SECONDS, Subject, one_line
from ._vmap import ElementSamples

KIND = "same in threads"
_LATER = (0, 5, 25)  # in each round: steps by which a call begins after the one before it
_STEPS = 2_000  # operations of Python that calls make in step
_START_SECONDS, _STEP_SECONDS = 2.0, 0.3  # how long a call waits for the others


def has_threads(subject: Subject) -> bool:
    """Return whether its calls run in threads of an executor."""
    return leaves_process(subject.settings.get("executor")) is False


def threads_findings(elements: ElementSamples) -> Iterator[Finding | str]:
    """Yield a finding if calls side by side give other results than one after the other.

    Yields a text if there is nothing to compare.
    """
    subject = elements.subject
    engine = engine_of(subject.settings["executor"])
    inputs, alone = _inputs(elements, engine.workers)
    if engine.workers < 2:
        yield "its executor has one worker"
    elif len(inputs) < 2:
        yield "no two different inputs that it accepts were found"
    else:
        for later in _LATER:
            found = _together(subject, engine, inputs, later)
            wrong = _wrong(elements, inputs, alone, found)
            if wrong:
                yield _finding(subject, len(inputs), wrong, _still(subject, inputs, alone))
                return


def _inputs(
    elements: ElementSamples, most: int
) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]]]:
    """Return distinct inputs, and the results of single calls with them."""
    inputs: dict[tuple[bytes, ...], list[np.ndarray]] = {}
    results = []
    for n in range(min(elements.count, most)):
        operands = [values[n] for values in elements.variants]
        key = tuple(x.tobytes() for x in operands)
        if key not in inputs and elements.takes(operands):
            inputs[key] = operands
            results.append(elements.result((n,) * len(operands)))
    return list(inputs.values()), results


def _together(subject: Subject, engine: Any, inputs: Sequence[Any], later: int) -> list[Any]:
    """Make a call with each of the inputs at once; return their results, or errors."""
    seconds = SECONDS + 10 * len(inputs) * subject.seconds_each
    barrier = threading.Barrier(len(inputs))
    futures = [
        engine.submit(_in_step, barrier, n * later, subject, operands)
        for n, operands in enumerate(inputs)
    ]
    found: list[Any] = []
    for future in futures:
        try:
            found.append(future.result(seconds))
        except concurrent.futures.TimeoutError as error:
            if future.done():
                found.append(error)
            else:
                found.append(f"has not returned after {seconds:.0f} s")
        except Exception as error:
            found.append(error)
    return found


def _in_step(
    barrier: threading.Barrier, later: int, subject: Subject, operands: Any
) -> list[np.ndarray]:
    """Make a call that waits for the other calls before each operation of Python.

    So all of them are in the same place of the function, or `later` operations apart, as far as
    they go the same way. If one ends, or is late because it waits for a lock that another one
    holds, they go on as they please.
    """
    left = _STEPS

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if not left or barrier.broken:
            sys.settrace(None)
        if not left or barrier.broken or is_machinery(frame.f_code.co_filename):
            return None
        left -= 1
        frame.f_trace_opcodes = True
        _wait(barrier, _STEP_SECONDS)
        return step

    _wait(barrier, _START_SECONDS)
    for _ in range(later):
        _wait(barrier, _STEP_SECONDS)
    traced = sys.gettrace() is not None  # by a debugger, which is left alone
    if not traced:
        sys.settrace(step)
    try:
        return subject.run(operands)
    finally:
        if not traced:
            sys.settrace(None)
        barrier.abort()


def _wait(barrier: threading.Barrier, seconds: float) -> None:
    try:
        barrier.wait(seconds)
    except threading.BrokenBarrierError:
        pass


def _wrong(
    elements: ElementSamples,
    inputs: Sequence[list[np.ndarray]],
    alone: Sequence[list[np.ndarray]],
    found: Sequence[Any],
) -> list[str]:
    """Say for which inputs the results differ from those of single calls, and how."""
    wrong = []
    for operands, expected, got in zip(inputs, alone, found, strict=True):
        what: Any = got
        if isinstance(got, Exception):
            what = f"fails ({one_line(got)})"
        elif not isinstance(got, str):
            differs = difference(got, expected, elements.subject.paths, REPEATED)
            what = differs and f"returns {differs}"
        if what:
            wrong.append(f"{what} for {elements.shown(operands) or 'the given arguments'}")
    return wrong


def _still(subject: Subject, inputs: Sequence[Any], alone: Sequence[Any]) -> bool:
    """Return whether single calls still give the results that they gave before."""
    try:
        return not any(
            difference(subject.run(operands), expected, subject.paths, REPEATED)
            for operands, expected in zip(inputs, alone, strict=True)
        )
    except Exception:
        return False


def _finding(subject: Subject, count: int, wrong: Sequence[str], still: bool) -> Finding:
    what = f"called with {count} inputs at once in threads, it {'; it '.join(wrong)}"
    if not still:
        what += "; after that, single calls no longer give the results of before"
    leave = option(subject.callback.host, "executor", "processes")
    stays = subject.settings.get("arrays") == "jax" or subject.settings.get("compile")
    return Finding(
        KIND,
        what,
        "Let calls share nothing that they change, hold a threading.Lock() while they do"
        f"{'' if stays else f', or register it with {leave}'}.",
    )
