"""What a session does while the host calls of a cell do not return."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell

from ...capabilities import queue
from ...diagnostics import Hang, HangKind, Watchdog, all_running_calls, is_off, way_out
from ...recording import Recording, visible
from ..display import LiveView
from ._left_recording import LeftRecording
from ._stacks import main_stack, stacks

DEFAULT_SECONDS = 30.0
_LOOKS_LIKE = {
    HangKind.DEADLOCK: "a deadlock",
    HangKind.FULL_QUEUE: "a full queue",
    HangKind.GIL: "a thread that holds the GIL",
    HangKind.SLOW: "a slow function",
    HangKind.COLLECTIVE: "a collective operation that waits for a device",
    HangKind.PROGRAM: "a long or endless loop in a compiled program",
    HangKind.LOCK: "a wait for a lock or another thread",
    HangKind.UNKNOWN: "a wait for something outside, such as a file or a connection",
}


class Hangs:
    """Tells that no host call of a cell returns, and why; and the way out if Stop cannot end it.

    It is told in the live view of the cell, or printed in a terminal. Meanwhile the recording of
    the cell is in a file, for the session after a restart of the kernel.

    Args:
        shell: IPython's shell.
        so_far: returns what the running cell has recorded, in any thread; None: nothing.

    Attributes:
        seconds: without a host call that begins or ends, before it is reported; None: never.
        left: the file.
    """

    def __init__(self, shell: InteractiveShell, so_far: Callable[[], Recording | None]) -> None:
        self.seconds: float | None = None if is_off() else DEFAULT_SECONDS
        self.left = LeftRecording(shell)
        self._in_terminal = getattr(shell, "kernel", None) is None
        self._so_far = so_far
        self._watchdog: Watchdog | None = None
        self._live: LiveView | None = None
        self._is_running = False
        self._is_printed = False  # why: the notice need not say it again

    def begin(self, live: LiveView | None) -> None:
        """Begin a cell; `live` is its live view, if it has one."""
        self._live, self._is_running, self._is_printed = live, True, False
        if self.seconds is not None and (live is not None or self._in_terminal):
            self._watchdog = Watchdog(self.seconds, self._told, self._moved)
            self._watchdog.start()

    def end(self) -> None:
        """End the cell."""
        self._live, self._is_running = None, False
        if self._watchdog is not None:
            self._watchdog.stop()
            self._watchdog = None
        self.left.discard()

    def cannot_end(self, hang: Hang) -> None:
        """Tell the way out of a cell that Stop cannot end, below why, which is printed already.

        Called on a thread of its own.
        """
        self._is_printed = True
        self._show(hang)
        words = "press Ctrl-\\ to end Python." if self._in_terminal else "restart the kernel."
        if hang.kind is HangKind.PROGRAM:
            words = f"To leave now, {words}"
        _print(f"{way_out(hang)} {words[0].upper()}{words[1:]}{self._leave()}")

    def _told(self, hang: Hang) -> None:
        self._leave()
        self._show(hang)
        if self._in_terminal:
            _print(f"{_title(hang)}\n{hang.text}")

    def _moved(self) -> None:
        self._show(None)
        self.left.discard()

    def _show(self, hang: Hang | None) -> None:
        live = self._live
        if live is None:
            return
        if hang is None:
            live.tell(None)
            return
        calls = stacks(all_running_calls(), time.perf_counter_ns(), queue.waiting_calls())
        where = f"{calls}\n{main_stack()}"
        text = "" if self._is_printed else hang.text
        live.tell({"title": _title(hang), "text": text, "stacks": where})

    def _leave(self) -> str:
        """Leave the recording so far to the next session; return what to say of it."""
        recording = self._so_far()
        try:
            is_left = recording is not None and self.left.write(recording)
        except OSError as error:
            return f" Its recording so far cannot be kept: {error}."
        if not self._is_running:  # the cell has just ended after all
            self.left.discard()
        return " %load_ext jupyter_jaxcb will offer its recording so far." if is_left else ""


def _title(hang: Hang) -> str:
    """Return one line: for how long no host call has returned, and what that looks like."""
    seconds = f" for {hang.seconds:,.0f} s" if hang.seconds else ""
    return f"No host call has returned{seconds}. This looks like {_LOOKS_LIKE[hang.kind]}."


def _print(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)
