"""Ctrl-C in a script whose main thread is stuck: explain the hang, then leave."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable

from ...stack.interrupt import Stuck, interrupt_main
from ._diagnosis import Hang, calls_left, examine
from ._signals import SignalThread

INTERRUPTED = 130  # the exit status after Ctrl-C, as of a shell
_MOMENT_SECONDS = 0.3  # in which a main thread that is not stuck handles the signal
_ENDING_SECONDS = 0.5  # in which interrupted host calls end


class CtrlC:
    """A context manager for the main thread, in which Ctrl-C works while that thread is stuck.

    If the main thread handles the signal, nothing more happens. If it does not, because it waits in
    C++, the first Ctrl-C explains what it waits for, and ends what can be ended: host functions in
    Python get an exception, and other calls are refused. If that does not release the main thread
    either, a second Ctrl-C leaves. A program with its own handler of the signal is left alone.
    Inside another one it has no effect.

    Args:
        say: called with each text.
        leave: called at the second Ctrl-C, on another thread; it should end the process.
    """

    _listening: CtrlC | None = None

    def __init__(self, say: Callable[[str], None], leave: Callable[[], None]) -> None:
        self._say, self._leave = say, leave
        self._stuck: Stuck | None = None  # as it was at the last signal
        self._signals = SignalThread(self._heard)

    def __enter__(self) -> CtrlC:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and CtrlC._listening is None:
            CtrlC._listening = self
            self._signals.listen()
        return self

    def __exit__(self, *_: object) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and CtrlC._listening is self:
            CtrlC._listening = None
            self._signals.rest()
            self._signals.close()

    def _heard(self, number: int) -> None:
        if number != signal.SIGINT or signal.getsignal(number) is not signal.default_int_handler:
            return
        if self._stuck is not None and not self._stuck.is_done():
            self._leave()
            return
        self._stuck = Stuck()
        # The next signal must be heard meanwhile.
        threading.Thread(target=self._explain, args=(self._stuck,), daemon=True).start()

    def _explain(self, stuck: Stuck) -> None:
        if explain_and_end(stuck, self._say):
            self._say("This cannot be ended from outside. Press Ctrl-C again to leave.")


def explain_and_end(stuck: Stuck, say: Callable[[str], None]) -> Hang | None:
    """Explain what the main thread waits for, if it does not move on, and end what can be ended.

    Returns:
        What was wrong, if the main thread is still stuck.
    """
    if stuck.wait(_MOMENT_SECONDS):
        return None
    hang = examine(time.perf_counter_ns())
    if stuck.is_done():
        return None
    say(hang.text)
    interrupt_main(stuck)
    return None if stuck.wait(_ENDING_SECONDS) else hang


def leave_at_next_interrupt(say: Callable[[str], None]) -> None:
    """Let Ctrl-C end the process at once; Python waits at its end for calls that still run."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if left := calls_left():
        say(f"{left}\nPython waits for it before it ends. Press Ctrl-C again to leave.")
    sys.stdout.flush()
