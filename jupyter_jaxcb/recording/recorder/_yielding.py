"""Turns for a thread that looks on, between host calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ._recorder import Recorder

_LONGEST_SECONDS = 0.05  # that a host call waits for a turn to end


class YieldPoints:
    """Stops the host calls of a recorder now and then, so that another thread can run.

    XLA's threads let go of the interpreter lock between host calls and take it again a few
    microseconds later. A thread that waits for the lock is woken each time and finds it taken: it
    starves, and the wake-ups slow the host calls down by a tenth. (Python hands the lock over after
    five milliseconds only to a thread that was not woken meanwhile.) With turns it gets the lock at
    once, and what it does is all that it costs.

    While entered, `recorder` hears of its calls through this object; a call is recorded before it
    waits, so no time that is recorded grows.

    Args:
        recorder: whose calls are stopped.
        every_ns: how often, at most.
    """

    def __init__(self, recorder: Recorder, every_ns: int) -> None:
        self._recorder = recorder
        self._every_ns = every_ns
        self._due_ns = 0
        self._turn = threading.Semaphore(0)
        self._over = threading.Semaphore(0)

    def __enter__(self) -> YieldPoints:
        recorder: Any = self._recorder
        self._due_ns = recorder.clock() + self._every_ns
        recorder.called = self._stopping(recorder.called)
        recorder.called_elements = self._stopping(recorder.called_elements)
        recorder.called_by_workers = self._stopping(recorder.called_by_workers)
        return self

    def __exit__(self, *exc: object) -> None:
        recorder = self._recorder
        del recorder.called, recorder.called_elements, recorder.called_by_workers
        self.end()  # of a turn that was given and not taken

    def take(self, seconds: float) -> bool:
        """Waits for a turn, at most that long; each turn that was got is to be ended."""
        return self._turn.acquire(timeout=seconds)

    def end(self) -> None:
        """Lets the host calls go on."""
        self._over.release()

    def wake(self) -> None:
        """Ends the waiting in `take`, with a turn that no call gave."""
        self._turn.release()

    def _stopping(self, tell: Callable[..., Any]) -> Callable[..., Any]:
        clock = self._recorder.clock

        def told(*args: Any, **kwargs: Any) -> Any:
            crossing = tell(*args, **kwargs)
            now = clock()
            if now > self._due_ns:
                self._due_ns = now + self._every_ns
                while self._over.acquire(blocking=False):
                    pass  # ends of turns that nobody waited for any more
                self._turn.release()
                self._over.acquire(timeout=_LONGEST_SECONDS)
            return crossing

        return told
