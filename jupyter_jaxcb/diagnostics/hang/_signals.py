"""Hear signals at once, also while the main thread is stuck in C++.

Python runs signal handlers in the main thread, between two bytecodes. But C writes the number of
each signal to a file descriptor (`signal.set_wakeup_fd`) as it arrives, and a thread reads it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable

_END = b"\0"  # no signal has this number


class SignalThread:
    """Calls a function on a thread of its own for each signal that arrives.

    Signals are also written to the file descriptor that was set before, such as that of asyncio.

    Args:
        heard: called with the number of each signal. It must return soon, since the next signal is
            heard after that.
    """

    def __init__(self, heard: Callable[[int], None]) -> None:
        self._heard = heard
        self._pipe = self._before = -1  # written to by C now, and before
        self._thread: threading.Thread | None = None

    def listen(self) -> None:
        """Hear signals from now on; call it in the main thread."""
        if self._thread is None:
            read, self._pipe = os.pipe()
            os.set_blocking(self._pipe, False)
            os.register_at_fork(after_in_child=self._in_child)
            self._thread = threading.Thread(
                target=self._read, args=(read,), name="jupyter_jaxcb signals", daemon=True
            )
            self._thread.start()
        self._before = signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)

    def rest(self) -> None:
        """Restore the previous file descriptor, unless another one was set since."""
        written_to = signal.set_wakeup_fd(-1)
        with contextlib.suppress(ValueError, OSError):  # the file may be closed by now
            signal.set_wakeup_fd(self._before if written_to == self._pipe else written_to)

    def close(self) -> None:
        """End the thread when it has handled the signals that have arrived; call `rest` before."""
        thread, self._thread = self._thread, None
        if thread is not None:
            if thread.is_alive():  # not in a forked process
                os.write(self._pipe, _END)
                thread.join()
            os.close(self._pipe)
            self._pipe = -1

    def _in_child(self) -> None:
        """Stop writing the signals of a forked process to the parent's pipe."""
        written_to = signal.set_wakeup_fd(-1)
        if written_to != self._pipe:
            signal.set_wakeup_fd(written_to)

    def _read(self, signals: int) -> None:
        with open(signals, "rb", buffering=0) as arriving:
            while (number := arriving.read(1)) not in (_END, b"", None):
                if self._before >= 0:
                    with contextlib.suppress(OSError):
                        os.write(self._before, number)
                self._heard(number[0])
