"""What has been dispatched and is not done."""

from __future__ import annotations

import _thread
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from .. import jax_compat
from ..core import any_lowered
from ..errors import host_error

_POLL_SECONDS = 0.001
_LONGEST_POLL_SECONDS = 0.02
_LAST = 8  # arrays that are not known as done: perhaps of the last program, which is
_LAG_SECONDS = 0.2  # until these are known as done, on a busy machine
_TOKEN_SECONDS = 0.2  # until a thread that waits for a token has woken up


class InFlight:
    """What this thread has dispatched and is not done now; it holds the arrays until it is.

    A thread's programs run in the order they were dispatched in, if they run behind its back and on
    one device: while any of this is not done, no host call on a thread of XLA's is of a program
    that is dispatched later.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._all: list[Any] = []
        self._tokens_done = threading.Event()
        if not any_lowered():
            self._tokens_done.set()
            return
        self._arrays = self._all = jax_compat.unfinished_arrays()
        tokens = jax_compat.unfinished_tokens()
        if tokens:
            # Not `threading.Thread`, whose locks an interrupted thread may hold.
            _thread.start_new_thread(_wait_for, (tokens, self._tokens_done))
        else:
            self._tokens_done.set()

    def is_done(self, patience: bool = False) -> bool:
        """Whether all of it is done by now, or has failed.

        Args:
            patience: give what is done a moment to be known as done.
        """
        until = None
        while True:
            self._arrays = [array for array in self._arrays if not jax_compat.is_done(array)]
            if not self._arrays:
                return self._tokens_done.wait(_TOKEN_SECONDS if patience else 0.0)
            now = time.monotonic()
            if until is None:
                lag = _LAG_SECONDS if len(self._arrays) <= _LAST else _POLL_SECONDS
                until = now + lag if patience else now
            if now >= until:
                return False
            time.sleep(_POLL_SECONDS)

    def forget_finished(self) -> None:
        """Holds only what is not done; nobody is going to ask for `errors`."""
        self._all = []

    def errors(self) -> list[BaseException]:
        """Those of the arrays, once it is over; lets go of all of them."""
        found = []
        for array in self._all:
            try:
                if not array.is_deleted():
                    array.block_until_ready()
            except BaseException as error:
                if not isinstance(error, Exception) and host_error(error) is None:
                    raise  # an interrupt of the waiting itself
                found.append(error)
        self._all = []
        return found

    def wait(self, seconds: float, look: Callable[[], None] = lambda: None) -> bool:
        """Waits until it is over, but no longer than `seconds`; whether it is.

        A signal ends the waiting, as it does any of Python's. `look` is called every now and then.
        """
        deadline = time.monotonic() + seconds
        pause = _POLL_SECONDS
        self._tokens_done.wait(_POLL_SECONDS)  # mostly there is nothing to wait for but this
        while not self.is_done():
            if time.monotonic() > deadline:
                return False
            look()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL_SECONDS)
        return True


def _wait_for(tokens: list[Any], done: threading.Event) -> None:
    for token in tokens:
        with contextlib.suppress(BaseException):  # told to who waits for JAX's effects
            token.block_until_ready()
    done.set()
