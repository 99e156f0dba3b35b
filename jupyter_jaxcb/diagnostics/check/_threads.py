"""Check that a function with ``executor="threads"`` may be called in several threads at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import numpy as np

from ...recording import Finding
from ...stack.trace import is_machinery
from ._compare import REPEATED, difference
from ._elements import Elements
from ._subject import SECONDS, Subject, one_line

KIND = "same in threads"
_LATER = (0, 5, 25)  # in each round: steps by which a call begins after the one before it
_STEPS = 2_000  # operations of Python that calls make in step
_START_SECONDS, _STEP_SECONDS = 2.0, 0.3  # how long a call waits for the others


def threads_of(executor: Any) -> int:
    """Return how many threads run the calls; 0 if the executor has none."""
    if isinstance(executor, str):
        name, _, count = executor.partition(":")
        return int(count or 3) if name == "threads" else 0
    return executor._max_workers if isinstance(executor, ThreadPoolExecutor) else 0


def threads_findings(elements: Elements) -> Iterator[Finding | str]:
    """Yield a finding if calls side by side give other results than one after the other."""
    subject, inputs, alone = elements.subject, [], []
    count = threads_of(subject.settings["executor"])
    for n in range(min(elements.count, count)):
        operands = [values[n] for values in elements.variants]
        is_new = operands and all(
            any(x.tobytes() != y.tobytes() for x, y in zip(operands, others, strict=True))
            for others in inputs
        )
        if is_new and elements.takes(operands):
            inputs.append(operands)
            alone.append(elements.result([n] * len(operands)))
    if count < 2:
        yield "its executor has one worker"
        return
    if len(inputs) < 2:
        yield "no two different inputs that it accepts were found"
        return
    for later in _LATER:
        wrong = []
        for operands, expected, got in zip(
            inputs, alone, _together(subject, inputs, later), strict=True
        ):
            if isinstance(got, BaseException):
                what = f"fails ({one_line(got)})"
            elif isinstance(got, str):
                what = got
            else:
                differs = difference(got, expected, subject.paths, REPEATED)
                what = f"returns {differs}" if differs else ""
            if what:
                wrong.append(f"{what} for {elements.shown(operands) or 'the given arguments'}")
        if wrong:
            what = f"called with {len(inputs)} inputs at once in threads, it {'; it '.join(wrong)}"
            stays = subject.settings.get("arrays") == "jax" or subject.settings.get("compile")
            other = "" if stays else ", or register it with executor='processes'"
            advice = "Let calls share nothing that they change, hold a threading.Lock() while they"
            yield Finding(KIND, what, f"{advice} do{other}.")
            return


def _together(subject: Subject, inputs: list[list[np.ndarray]], later: int) -> list[Any]:
    """Call it with all inputs at once; return results, errors, and words for calls that hang."""
    seconds = SECONDS + 10 * len(inputs) * subject.seconds_each
    found: list[Any] = [f"has not returned after {seconds:.0f} s"] * len(inputs)
    barrier = threading.Barrier(len(inputs))

    def call(n: int) -> None:
        try:
            found[n] = _in_step(barrier, n * later, subject, inputs[n])
        except BaseException as error:
            found[n] = error

    threads = [threading.Thread(target=call, args=(n,), daemon=True) for n in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    return found


def _in_step(
    barrier: threading.Barrier, later: int, subject: Subject, operands: list[np.ndarray]
) -> list[np.ndarray]:
    """Make a call that waits for the other calls before each operation of Python.

    So all of them are in the same place of the function, or `later` operations apart, as far as
    they go the same way. If one ends, or is late because it waits for a lock that another one
    holds, they go on as they please.
    """
    left = _STEPS

    def wait(seconds: float) -> None:
        try:
            barrier.wait(seconds)
        except threading.BrokenBarrierError:
            pass

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        if not left or barrier.broken:
            sys.settrace(None)
        if not left or barrier.broken or is_machinery(frame.f_code.co_filename):
            return None
        left -= 1
        frame.f_trace_opcodes = True
        wait(_STEP_SECONDS)
        return step

    wait(_START_SECONDS)
    for _ in range(later):
        wait(_STEP_SECONDS)
    traced = sys.gettrace() is not None  # by a debugger, which is left alone
    if not traced:
        sys.settrace(step)
    try:
        return subject.run(operands)
    finally:
        if not traced:
            sys.settrace(None)
        barrier.abort()
