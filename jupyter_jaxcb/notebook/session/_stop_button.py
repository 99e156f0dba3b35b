"""The stop button: what an interrupted cell has dispatched makes no more host calls."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import CodeType, FrameType
from typing import Any

from ...stack import interrupt, interrupt_main, raise_in_caller
from ..errors import SIGNAL_HANDLERS


class Stop:
    """While a cell runs, SIGINT ends the host calls that are waiting too, before all else.

    A program's calls come on threads of XLA's, which no exception of Python's reaches; and what a
    cell catches nobody else sees. So it takes a handler: one that calls the one before it. While
    the main thread waits in C++ it does not get there; a thread that reads what signals write does.

    Args:
        ends: the function that ends a cell. It is never left half done: it looks at `pressed`.

    Attributes:
        pressed: whether the signal came since the cell began.
    """

    def __init__(self, ends: CodeType) -> None:
        self.pressed = False
        self._ends = ends
        self._before: Any = None
        self._handler: Any = None
        self._signals: int | None = None  # where to write
        self._signals_before = -1

    def begin(self) -> None:
        """A cell begins; only the main thread may have it so."""
        self.end()  # of a cell that was interrupted at its end
        self.pressed = False
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            return

        def stop(number: int, frame: Any) -> Any:
            self.pressed = True
            interrupt()
            if self._is_ending(frame):
                return None
            try:
                return before(number, frame)
            except KeyboardInterrupt as error:
                raise_in_caller(error, frame)
                raise

        SIGNAL_HANDLERS.add(stop.__code__)
        self._before, self._handler = before, stop
        signal.signal(signal.SIGINT, stop)
        self._signals_before = signal.set_wakeup_fd(self._pipe(), warn_on_full_buffer=False)

    def _is_ending(self, frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code is not self._ends:
            frame = frame.f_back
        return frame is not None

    def end(self) -> None:
        """Puts the handler back that was there, unless the cell has put another one in place."""
        if self._handler is None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) is self._handler:
            signal.signal(signal.SIGINT, self._before)
        written_to = signal.set_wakeup_fd(-1)
        with contextlib.suppress(ValueError, OSError):  # it may be closed by now
            ours = written_to == self._signals
            signal.set_wakeup_fd(self._signals_before if ours else written_to)
        self._before = self._handler = None

    def close(self) -> None:
        """Ends the thread too."""
        self.end()
        if self._signals is not None:
            os.close(self._signals)
            self._signals = None

    def _pipe(self) -> int:
        if self._signals is None:
            read, self._signals = os.pipe()
            os.set_blocking(self._signals, False)
            os.register_at_fork(after_in_child=self._in_child)
            threading.Thread(
                target=self._watch, args=(read,), name="jupyter_jaxcb signals", daemon=True
            ).start()
        return self._signals

    def _in_child(self) -> None:
        """The signals of a child process are its own."""
        written_to = signal.set_wakeup_fd(-1)
        if written_to != self._signals:
            signal.set_wakeup_fd(written_to)

    def _watch(self, signals: int) -> None:
        while numbers := os.read(signals, 64):
            if self._signals_before >= 0:  # whoever wanted to know before
                with contextlib.suppress(OSError):
                    os.write(self._signals_before, numbers)
            # A handler that the cell has put in place may mean that it goes on.
            if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is self._handler:
                interrupt_main()
        os.close(signals)
