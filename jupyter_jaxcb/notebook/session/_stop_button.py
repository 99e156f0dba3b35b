"""The stop button: cancel the waiting host calls of an interrupted cell."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import CodeType, FrameType
from typing import Any

from ...stack import interrupt, interrupt_main
from ..errors import SIGNAL_HANDLERS


class Stop:
    """While a cell runs, SIGINT first cancels the host calls that are waiting.

    XLA makes host calls on its own threads, which KeyboardInterrupt does not reach, and the cell
    may catch it. So this installs a signal handler, which then calls the previous handler. Python
    runs signal handlers only in the main thread, which may be waiting in C++; a thread that reads
    the signal wakeup file descriptor covers that case.

    Args:
        ends: the code of the function that ends a cell. The handler does not interrupt it; it
            checks `pressed` instead.

    Attributes:
        pressed: whether the signal has arrived since the cell began.
    """

    def __init__(self, ends: CodeType) -> None:
        self.pressed = False
        self._ends = ends
        self._before: Any = None
        self._handler: Any = None
        self._signals: int | None = None  # file descriptor that signals are written to
        self._signals_before = -1

    def begin(self) -> None:
        """Begin a cell: install the handler, which works only in the main thread."""
        self.end()  # a previous cell may have been interrupted at its end
        self.pressed = False
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(before):
            return

        def stop(number: int, frame: Any) -> Any:
            self.pressed = True
            interrupt()
            if self._is_ending(frame):
                return None
            return before(number, frame)

        SIGNAL_HANDLERS.add(stop.__code__)
        self._before, self._handler = before, stop
        signal.signal(signal.SIGINT, stop)
        self._signals_before = signal.set_wakeup_fd(self._pipe(), warn_on_full_buffer=False)

    def _is_ending(self, frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code is not self._ends:
            frame = frame.f_back
        return frame is not None

    def end(self) -> None:
        """Restore the previous handler, unless the cell has installed another one."""
        if self._handler is None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) is self._handler:
            signal.signal(signal.SIGINT, self._before)
        written_to = signal.set_wakeup_fd(-1)
        with contextlib.suppress(ValueError, OSError):  # the file may be closed by now
            ours = written_to == self._signals
            signal.set_wakeup_fd(self._signals_before if ours else written_to)
        self._before = self._handler = None

    def close(self) -> None:
        """Restore the handler and end the thread."""
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
        """Stop writing the signals of a forked process to the parent's pipe."""
        written_to = signal.set_wakeup_fd(-1)
        if written_to != self._signals:
            signal.set_wakeup_fd(written_to)

    def _watch(self, signals: int) -> None:
        while numbers := os.read(signals, 64):
            if self._signals_before >= 0:  # pass it on to the previous file descriptor
                with contextlib.suppress(OSError):
                    os.write(self._signals_before, numbers)
            # With its own handler, the cell may want to continue.
            if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is self._handler:
                interrupt_main()
        os.close(signals)
