"""Pause host calls briefly, so that an observing thread can run."""

from __future__ import annotations

import threading

from ._recorder import Recorder

_LONGEST_SECONDS = 0.05  # a host call waits at most this long for a turn to end


class YieldPoints:
    """Pauses the host calls of a recorder now and then, so that another thread can run.

    XLA's threads release the GIL between host calls and take it again a few microseconds later. A
    thread that waits for the GIL is woken each time and finds it taken: it starves, and the
    wake-ups slow the host calls down by a tenth. (Python hands the GIL over after five
    milliseconds only to a thread that was not woken meanwhile.) With turns the thread gets the GIL
    at once, and costs only the time that it runs.

    A call is recorded before it waits, so pauses do not count as host time.

    Args:
        recorder: the recorder whose calls are paused.
        every_ns: the least time between two pauses.
    """

    def __init__(self, recorder: Recorder, every_ns: int) -> None:
        self._recorder = recorder
        self._every_ns = every_ns
        self._due_ns = 0
        self._turn = threading.Semaphore(0)
        self._over = threading.Semaphore(0)

    def __enter__(self) -> YieldPoints:
        self._due_ns = self._recorder.clock() + self._every_ns
        self._recorder.pausing(self._pause)
        return self

    def __exit__(self, *exc: object) -> None:
        self._recorder.pausing(None)
        self.end()  # a call may still wait for a turn that the observer never took

    def take(self, seconds: float) -> bool:
        """Wait for a turn, at most `seconds`; return whether there is one, to be ended by `end`."""
        return self._turn.acquire(timeout=seconds)

    def end(self) -> None:
        """End the turn, so that the host calls continue."""
        self._over.release()

    def wake(self) -> None:
        """Make `take` return, without a pause of the host calls."""
        self._turn.release()

    def _pause(self) -> None:
        now = self._recorder.clock()
        if now > self._due_ns:
            self._due_ns = now + self._every_ns
            while self._over.acquire(blocking=False):
                pass  # ends of turns after whose timeout the host call continued
            self._turn.release()
            self._over.acquire(timeout=_LONGEST_SECONDS)
