"""Wait at the end of a cell for the host calls that it dispatched."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from ...diagnostics import RunningCall, all_running_calls
from ...stack import InFlight
from ._stacks import running_line
from ._stop_button import Stop

DEFAULT_SECONDS = 5.0
ENDING_SECONDS = 0.5  # for interrupted host calls to end
_MESSAGE_AFTER_SECONDS = 1.0


class Barrier:
    """Waits for the host calls of a cell, and prints which ones if that takes long.

    Args:
        clock: the recorder's clock, in nanoseconds.

    Attributes:
        seconds: the longest time to wait; 0: no wait.
    """

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self.seconds = DEFAULT_SECONDS
        self._clock = clock

    def wait(self, in_flight: InFlight, stop: Stop) -> bool:
        """Wait for the host calls; return whether they ended in time.

        Raises:
            KeyboardInterrupt: the stop button was pressed.
        """
        begun = time.monotonic()
        printed: set[tuple[int, int]] = set()  # ids of host functions, numbers of their calls

        def poll() -> None:
            if stop.pressed:
                raise KeyboardInterrupt
            if time.monotonic() - begun > _MESSAGE_AFTER_SECONDS:
                self._print_running(printed, "waiting for")

        done = in_flight.wait(self.seconds, poll)
        if not done:
            printed.clear()
            named = self._print_running(printed, "still running:")
            what = "Host calls" if named else "Programs of this cell"
            _print(
                f"{what} are still running after {self.seconds:g} s; their later output appears "
                "here, marked as late. %jax_callbacks --stacks shows where they are; "
                "%jax_callbacks --wait SECONDS sets how long a cell waits."
            )
        return done

    def _print_running(self, printed: set[tuple[int, int]], words: str) -> bool:
        """Print each running host call once; return whether there are any."""
        calls: list[RunningCall] = all_running_calls()
        for call in calls:
            if (id(call.host), call.number) not in printed:
                printed.add((id(call.host), call.number))
                _print(f"{words} {running_line(call, self._clock())}")
        return bool(calls)


def _print(line: str) -> None:
    print(line, file=sys.stderr)


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
