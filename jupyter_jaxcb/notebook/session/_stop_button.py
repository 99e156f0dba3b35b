"""The stop button: cancel the waiting host calls of an interrupted cell."""

from __future__ import annotations

import contextvars
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

from ...diagnostics import Hang, SignalThread, explain_and_end
from ...recording import visible
from ...stack import Stuck, interrupt, is_below
from ..errors import SIGNAL_HANDLERS


class Stop:
    """While a cell runs, SIGINT first cancels the host calls that are waiting.

    XLA makes host calls on its own threads, which KeyboardInterrupt does not reach, and the cell
    may catch it. So this installs a signal handler, which then calls the previous handler. Python
    runs signal handlers only in the main thread, which may be waiting in C++; a `SignalThread`
    covers that case: it prints what the host calls wait for, and ends what can be ended.

    Args:
        ends: the code of the function that ends a cell. The handler does not interrupt it; it
            checks `pressed` instead.
        cannot_end: called in another thread, in the context of the cell, if the main thread still
            waits after that, with what is wrong.

    Attributes:
        pressed: whether the signal has arrived since the cell began.
    """

    def __init__(self, ends: CodeType, cannot_end: Callable[[Hang], None]) -> None:
        self.pressed = False
        self._ends = ends
        self._cannot_end = cannot_end
        self._context = contextvars.copy_context()  # so that output goes to the running cell
        self._stuck: Stuck | None = None  # as it was at the last signal
        self._before: Any = None
        self._handler: Any = None
        self._signals = SignalThread(self._heard)

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
            return None if is_below((self._ends,), frame) else before(number, frame)

        self._context = contextvars.copy_context()
        SIGNAL_HANDLERS.add(stop.__code__)
        self._before, self._handler = before, stop
        signal.signal(signal.SIGINT, stop)
        self._signals.listen()

    def end(self) -> None:
        """Restore the previous handler, unless the cell has installed another one."""
        if self._handler is None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) is self._handler:
            signal.signal(signal.SIGINT, self._before)
        self._signals.rest()
        self._before = self._handler = self._stuck = None

    def close(self) -> None:
        """Restore the handler and end the thread."""
        self.end()
        self._signals.close()

    def _heard(self, number: int) -> None:
        # With its own handler, the cell may want to continue.
        if number != signal.SIGINT or signal.getsignal(signal.SIGINT) is not self._handler:
            return
        if self._stuck is None or self._stuck.is_done():
            stuck = self._stuck = Stuck()
            context = self._context.copy()

            def explain() -> None:
                hang = context.run(explain_and_end, stuck, _print, only_jax=True)
                if hang is not None:
                    context.run(self._cannot_end, hang)

            threading.Thread(target=explain, name="jupyter_jaxcb stop", daemon=True).start()


def _print(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)
