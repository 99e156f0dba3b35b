"""Ctrl-C in a script whose main thread is stuck: explain the hang, then leave."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable

from ...stack.interrupt import Stuck, interrupt_main, is_call_of_jax
from ...stack.trace import frames_of_threads
from ..record import all_running_calls
from ._diagnosis import Hang, HangKind, calls_left, examine
from ._signals import SignalThread

INTERRUPTED = 130  # the exit status after Ctrl-C, as of a shell
_MOMENT_SECONDS = 0.3  # in which a main thread that is not stuck handles the signal
_ENDING_SECONDS = 0.5  # in which interrupted host calls end
_POLL_SECONDS = 0.1
_HANDLING_SECONDS = 0.7  # in which a main thread that has handled the signal leaves or goes on


class CtrlC:
    """A context manager for the main thread, in which Ctrl-C works while that thread is stuck.

    If the main thread handles the signal, nothing more happens. If it does not, because it waits in
    C++, the first Ctrl-C explains what it waits for, and ends what can be ended: host functions in
    Python get an exception, and other calls are refused. If that does not release the main thread
    either, a second Ctrl-C leaves. Also if the main thread handles the signal, but waits again a
    second later, and host calls that ran at the signal are still running, as those in threads of
    the user. A program with its own handler of the signal is left alone. Inside another one it has
    no effect.

    Args:
        say: called with each text.
        leave: called at the second Ctrl-C, on another thread; it should end the process.
    """

    _listening: CtrlC | None = None

    def __init__(self, say: Callable[[str], None], leave: Callable[[], None]) -> None:
        self._say, self._leave = say, leave
        self._stuck: Stuck | None = None  # as it was at the last signal
        self._leaves_next = False
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
        if number != signal.SIGINT or not _is_default():
            return
        if self._leaves_next or (self._stuck is not None and not self._stuck.is_done()):
            self._leave()
            return
        self._stuck = Stuck()
        arguments = self._stuck, _running()
        # Meanwhile the next signal must be handled.
        threading.Thread(
            target=self._explain, args=arguments, name="jupyter_jaxcb Ctrl-C", daemon=True
        ).start()

    def _explain(self, stuck: Stuck, calls: set[tuple[int, int]]) -> None:
        hang = explain_and_end(stuck, self._say) or self._explain_waiting(calls)
        if hang is not None:
            self._leaves_next = True
            self._say(f"{way_out(hang)} Press Ctrl-C again to leave.")
            while not stuck.is_done() or calls & _running():
                time.sleep(_POLL_SECONDS)
            # A second signal may end them in the main thread before it is handled here.
            time.sleep(_MOMENT_SECONDS)
            self._leaves_next = False

    def _explain_waiting(self, calls: set[tuple[int, int]]) -> Hang | None:
        """Explain what the main thread waits for that has handled the signal, if for `calls`."""
        time.sleep(_HANDLING_SECONDS)
        stuck = Stuck()
        if not calls & _running():
            return None
        hang = examine(time.perf_counter_ns())
        if stuck.is_done() or CtrlC._listening is not self or not _is_default():
            return None
        self._say(hang.text)
        return hang


def _is_default() -> bool:
    """Return whether Ctrl-C raises KeyboardInterrupt."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _running() -> set[tuple[int, int]]:
    """Return the host calls that are running, by what distinguishes them."""
    return {(id(call.host), call.number) for call in all_running_calls()}


def explain_and_end(
    stuck: Stuck, say: Callable[[str], None], only_jax: bool = False
) -> Hang | None:
    """Explain what the main thread waits for, if it does not move on, and end what can be ended.

    Args:
        stuck: where it was when the signal arrived.
        say: called with the text.
        only_jax: while no host call is running, end first, and explain nothing but a program.

    Returns:
        What was wrong, if the main thread is still stuck.
    """
    if stuck.wait(_MOMENT_SECONDS):
        return None
    at_calls = all_running_calls() or any(map(is_call_of_jax, frames_of_threads().values()))
    ends_first = only_jax and not at_calls
    if ends_first:
        interrupt_main(stuck)
        stuck.wait(_ENDING_SECONDS)
    hang = examine(time.perf_counter_ns())
    is_program = hang.kind in (HangKind.PROGRAM, HangKind.COLLECTIVE)
    if stuck.is_done() or (ends_first and not is_program):
        return None
    say(hang.text)
    interrupt_main(stuck)
    return None if stuck.wait(_ENDING_SECONDS) else hang


def way_out(hang: Hang) -> str:
    """Return what can still end the program after an interrupt."""
    if hang.kind is HangKind.PROGRAM:
        return "The program ends at its next host call, or when it is done."
    return "This cannot be ended from outside."


def leave_at_next_interrupt(say: Callable[[str], None]) -> None:
    """Let Ctrl-C end the process at once; Python waits at its end for calls that still run."""
    if _is_default():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if left := calls_left():
        say(f"{left}\nPython waits for it before it ends. Press Ctrl-C again to leave.")
    sys.stdout.flush()
