"""Wait at the end of a cell for the host calls that it dispatched."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from ...capabilities import Unfinished, queue
from ...diagnostics import all_running_calls
from ...recording import visible
from ._stacks import running_line

DEFAULT_SECONDS = 5.0
ENDING_SECONDS = 0.5  # for interrupted host calls to end
_MESSAGE_AFTER_SECONDS = 1.0  # of the wait, or of one call


def wait_for_calls(unfinished: Unfinished, seconds: float, is_pressed: Callable[[], bool]) -> bool:
    """Wait for host calls, also those in the queue; return whether they ended in time.

    It prints which of them take long, and which are left.

    Args:
        unfinished: the calls.
        seconds: the longest time to wait.
        is_pressed: whether the stop button was pressed.

    Raises:
        KeyboardInterrupt: the stop button was pressed.
    """
    begun = time.monotonic()
    seen: dict[tuple[int, int], float] = {}  # when; by ids of host functions, call numbers
    printed = set()

    def look() -> None:
        if is_pressed():
            raise KeyboardInterrupt
        now = time.monotonic()
        for call in all_running_calls():
            key = id(call.host), call.number
            if now - seen.setdefault(key, now) > _MESSAGE_AFTER_SECONDS and key not in printed:
                printed.add(key)
                _print(f"waiting for {running_line(call, time.perf_counter_ns())}")
        waiting = queue.waiting_calls()
        if now - begun > _MESSAGE_AFTER_SECONDS and waiting and "queue" not in printed:
            printed.add("queue")
            _print(f"waiting for {waiting}; the stop button drops them")

    if unfinished.wait(seconds, look):
        return True
    calls, waiting = all_running_calls(), queue.waiting_calls()
    for call in calls:
        _print(f"still running: {running_line(call, time.perf_counter_ns())}")
    what = f"{'Host calls' if calls else 'Programs of this cell'} are still running"
    if waiting:
        what = f"{waiting} are left"
    _print(
        f"{what} after {seconds:g} s; their later output appears here, marked as late. "
        f"%jax_callbacks --stacks shows where they are"
        f"{'; jaxcb.drop_queued() drops them' if waiting else ''}; "
        "%jax_callbacks --wait SECONDS sets how long a cell waits."
    )
    return False


def left_running() -> str:
    """Return the message after an interrupt, with the host calls that are still running."""
    now = time.perf_counter_ns()
    calls = "; ".join(running_line(call, now) for call in all_running_calls())
    if not calls:
        return "interrupted; waiting host calls were cancelled"
    return (
        f"interrupted; still finishing: {calls}. Waiting host calls were cancelled. New JAX work "
        "starts after these finish."
    )


def _print(line: str) -> None:
    print(visible(line), file=sys.stderr)
