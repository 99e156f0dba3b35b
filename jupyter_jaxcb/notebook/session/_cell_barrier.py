"""Wait at the end of a cell for the host calls that it dispatched."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from ...capabilities import Unfinished, queue
from ...diagnostics import all_running_calls
from ...recording import visible
from ._stacks import running_line
from ._stop_button import Stop

DEFAULT_SECONDS = 5.0
ENDING_SECONDS = 0.5  # for interrupted host calls to end
_MESSAGE_AFTER_SECONDS = 1.0  # of the wait, or of one call


class Barrier:
    """Waits for the host calls of a cell, and prints which of them take long.

    Args:
        clock: the recorder's clock, in nanoseconds.

    Attributes:
        seconds: the longest time to wait; 0: no wait.
    """

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self.seconds = DEFAULT_SECONDS
        self._clock = clock

    def wait(self, unfinished: Unfinished, stop: Stop) -> bool:
        """Wait for the host calls, also those in the queue; return whether they ended in time.

        Raises:
            KeyboardInterrupt: the stop button was pressed.
        """
        begun = time.monotonic()
        seen: dict[tuple[int, int], float] = {}  # when; by ids of host functions, call numbers
        printed: set[tuple[int, int]] = set()
        said = False  # that calls wait in the queue

        def poll() -> None:
            nonlocal said
            if stop.pressed:
                raise KeyboardInterrupt
            now = time.monotonic()
            for call in all_running_calls():
                key = id(call.host), call.number
                if now - seen.setdefault(key, now) > _MESSAGE_AFTER_SECONDS and key not in printed:
                    printed.add(key)
                    _print(f"waiting for {running_line(call, self._clock())}")
            if now - begun > _MESSAGE_AFTER_SECONDS and not said:
                waiting = queue.waiting_calls()
                if waiting:
                    said = True
                    _print(f"waiting for {waiting}; the stop button drops them")

        done = unfinished.wait(self.seconds, poll)
        if not done:
            calls = all_running_calls()
            for call in calls:
                _print(f"still running: {running_line(call, self._clock())}")
            self._print_unfinished(bool(calls))
        return done

    def _print_unfinished(self, running: bool) -> None:
        """Say what is left after the wait, besides the `running` calls that are already named."""
        waiting = queue.waiting_calls()
        if waiting:
            what = f"{waiting} are left"
            more = "; jaxcb.drop_queued() drops them"
        else:
            what = f"{'Host calls' if running else 'Programs of this cell'} are still running"
            more = ""
        _print(
            f"{what} after {self.seconds:g} s; their later output appears here, marked as late. "
            f"%jax_callbacks --stacks shows where they are{more}; "
            "%jax_callbacks --wait SECONDS sets how long a cell waits."
        )


def _print(line: str) -> None:
    print(visible(line), file=sys.stderr)


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
