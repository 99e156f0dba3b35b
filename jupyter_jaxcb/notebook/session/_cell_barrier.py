"""A cell ends when the host calls that it dispatched have been made, or after a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from ...diagnostics import RunningCall, all_running_calls
from ...stack import InFlight
from ._stacks import running_line
from ._stop_button import Stop

DEFAULT_SECONDS = 5.0
ENDING_SECONDS = 0.5  # for a host call that is interrupted
_TELL_AFTER_SECONDS = 1.0


class Barrier:
    """Waits for what a cell has in flight, and says for what if that takes its time.

    Args:
        clock: in nanoseconds, of the recorder.

    Attributes:
        seconds: that it waits at most; 0: not at all.
    """

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self.seconds = DEFAULT_SECONDS
        self._clock = clock

    def wait(self, in_flight: InFlight, stop: Stop) -> bool:
        """Whether all of it was done in time, or before `stop` was pressed."""
        begun = time.monotonic()
        told: set[tuple[int, int]] = set()  # host functions and calls of them

        def look() -> None:
            if stop.pressed:
                raise KeyboardInterrupt
            if time.monotonic() - begun > _TELL_AFTER_SECONDS:
                self._tell(told, "waiting for")

        done = in_flight.wait(self.seconds, look)
        if not done:
            told.clear()
            names = self._tell(told, "still running:")
            rest = "" if names else " of what it computes"
            _say(
                f"the cell ends without the end{rest}, after {self.seconds:g} s; what comes later "
                "is shown here, marked late. %jax_callbacks --stacks says where it is; "
                "%jax_callbacks --wait SECONDS sets how long a cell waits."
            )
        return done

    def _tell(self, told: set[tuple[int, int]], words: str) -> bool:
        """Says which host calls are running, each once; whether there are any."""
        calls: list[RunningCall] = all_running_calls()
        for call in calls:
            if (id(call.host), call.number) not in told:
                told.add((id(call.host), call.number))
                _say(f"{words} {running_line(call, self._clock())}")
        return bool(calls)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def left_running() -> str:
    """After an interrupt: which host calls are left to finish."""
    now = time.perf_counter_ns()
    calls = "; ".join(running_line(call, now) for call in all_running_calls())
    if not calls:
        return "interrupted; host calls that were waiting are not made"
    return (
        f"interrupted; left to finish: {calls}. Host calls that were waiting are not made. What "
        "JAX is given next it computes when these have ended."
    )
