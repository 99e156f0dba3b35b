"""The stop button: what an interrupted cell has dispatched makes no more host calls."""

from __future__ import annotations

import signal
import threading
from typing import Any

from ..stack import interrupt


class Stop:
    """While a cell runs, SIGINT ends the host calls that are waiting too, before all else.

    A program's calls come on threads of XLA's, which no exception of Python's reaches; and what a
    cell catches nobody else sees. So it takes a handler: one that calls the one before it.

    Attributes:
        pressed: whether the signal came since the cell began.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._before: Any = None
        self._handler: Any = None

    def begin(self) -> None:
        """A cell begins; only the main thread may have it so."""
        self.pressed = False
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            return

        def stop(number: int, frame: Any) -> Any:
            __tracebackhide__ = True  # IPython: not a frame the user cares for
            self.pressed = True
            interrupt()
            return before(number, frame)

        self._before, self._handler = before, stop
        signal.signal(signal.SIGINT, stop)

    def end(self) -> None:
        """Puts the handler back that was there, unless the cell has put another one in place."""
        if self._handler is not None and signal.getsignal(signal.SIGINT) is self._handler:
            signal.signal(signal.SIGINT, self._before)
        self._before = self._handler = None
