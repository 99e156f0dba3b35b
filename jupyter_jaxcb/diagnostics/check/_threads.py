"""Check that a function with ``executor="threads"`` may be called in several threads at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from ...stack.trace import is_machinery
from ._subject import REPEATED, SECONDS, Operands, Subject, Wrong, difference, one_line

_LATER = (0, 5, 25)  # in each round: steps by which a call begins after the one before it
_STEPS = 2_000  # operations of Python that calls make in step
_START_SECONDS, _STEP_SECONDS = 2.0, 0.3  # how long a call waits for the others


def threads_of(executor: Any) -> int:
    """Return how many threads run the calls; 0 if the executor has none."""
    if isinstance(executor, str):
        name, _, count = executor.partition(":")
        return int(count or 3) if name == "threads" else 0
    return executor._max_workers if isinstance(executor, ThreadPoolExecutor) else 0


def check_threads(subject: Subject) -> Iterator[Wrong | str]:
    """Compare calls side by side with those one after the other."""
    if subject.has_effects:
        yield f"an {subject.callback.flavor} function is called once"
        return
    count = threads_of(subject.settings["executor"])
    inputs = {
        tuple(x.tobytes() for x in operands): operands
        for operands in list(zip(*subject.variants, strict=True))[:count]
        if subject.alone(operands) is not None
    }
    if count < 2:
        yield "its executor has one worker"
    elif len(inputs) < 2:
        yield "no two different inputs that it accepts were found"
    for later in _LATER if count > 1 and len(inputs) > 1 else ():
        wrong = _wrong_together(subject, list(inputs.values()), later)
        if wrong:
            stays = subject.settings.get("arrays") == "jax" or subject.settings.get("compile")
            other = "" if stays else ", or register it with executor='processes'"
            advice = "Let calls share nothing that they change, hold a threading.Lock() while they"
            yield wrong, f"{advice} do{other}."
            return


def _wrong_together(subject: Subject, inputs: list[Operands], later: int) -> str:
    """Call it with all inputs at once, and describe what differs; empty if nothing does."""
    seconds = SECONDS + 10 * len(inputs) * max(subject.durations)
    wrong = [f"has not returned after {seconds:.0f} s"] * len(inputs)
    barrier = threading.Barrier(len(inputs))

    def call(n: int) -> None:
        try:
            result = _in_step(barrier, n * later, subject, inputs[n])
            differs = difference(result, subject.alone(inputs[n]) or [], subject.paths, REPEATED)
            wrong[n] = f"returns {differs}" if differs else ""
        except BaseException as error:
            wrong[n] = f"fails ({one_line(error)})"

    threads = [threading.Thread(target=call, args=(n,), daemon=True) for n in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    words = [
        f"it {what} for {subject.shown(operands) or 'the given arguments'}"
        for what, operands in zip(wrong, inputs, strict=True)
        if what
    ]
    if not words:
        return ""
    return f"called with {len(inputs)} inputs at once in threads, {'; '.join(words)}"


def _in_step(barrier: threading.Barrier, later: int, subject: Subject, operands: Operands) -> Any:
    """Make a call that waits for the other calls before each operation of Python.

    So all of them are in the same place of the function, or `later` operations apart, as far as
    they go the same way. If one ends, or is late because it waits for a lock that another one
    holds, they go on as they please.
    """
    left = _STEPS

    def wait(seconds: float = _STEP_SECONDS) -> None:
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
        wait()
        return step

    wait(_START_SECONDS)
    for _ in range(later):
        wait()
    is_traced = sys.gettrace() is not None  # by a debugger, which is left alone
    if not is_traced:
        sys.settrace(step)
    try:
        return subject.run(operands)
    finally:
        if not is_traced:
            sys.settrace(None)
        barrier.abort()
