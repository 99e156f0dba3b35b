"""Programs that have been dispatched and are not done."""

from __future__ import annotations

import _thread
import contextlib
import time
from collections.abc import Callable
from typing import Any

from ... import jax_compat
from ..errors import host_error, is_a
from ..trace import any_lowered

_POLL_SECONDS = 0.001
_LONGEST_POLL_SECONDS = 0.02
_LAST = 8  # with so few arrays left, the last program may be done without JAX having noticed
_LAG_SECONDS = 0.2  # time for JAX to notice that, on a busy machine
_TOKEN_SECONDS = 0.2  # time for a thread that waits for a token to wake up

# Called before Python shuts down executors at its end: what makes the calls that are left.
finish_before_executors_end: list[Callable[[], None]] = []


class InFlight:
    """The unfinished programs this thread has dispatched; holds their arrays until they are done.

    Asynchronous programs of one thread on one device run in the order of their dispatch. So until
    all of these are done, no host call on XLA's threads belongs to a program dispatched later.
    """

    def __init__(self) -> None:
        is_any = any_lowered()
        self._arrays: list[Any] = jax_compat.unfinished_arrays() if is_any else []
        self._all = self._arrays
        self._tokens_done = jax_compat.waits_in_cpp()
        tokens = jax_compat.unfinished_tokens() if is_any else []

        def wait_for_tokens() -> None:
            for token in tokens:
                with contextlib.suppress(BaseException):  # jax.effects_barrier() raises it
                    token.block_until_ready()
            self._tokens_done.set()

        if tokens:
            # Not `threading.Thread`: an interrupted thread may hold its locks.
            _thread.start_new_thread(wait_for_tokens, ())
        else:
            self._tokens_done.set()

    def is_done(self, patience: bool = False) -> bool:
        """Return whether all programs are done or have failed.

        Args:
            patience: wait a moment for JAX to notice programs that have just finished.
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
        """Release the finished arrays; `errors` will not be called."""
        self._all = []

    def errors(self) -> list[BaseException]:
        """Return the errors of the finished programs, and release all arrays."""
        errors = []
        arrays, self._all = self._all, []
        for array in arrays:
            try:
                if not array.is_deleted():
                    array.block_until_ready()
            except BaseException as error:
                if not is_a(error, Exception) and host_error(error) is None:
                    raise  # an interrupt of this wait
                errors.append(error)
        return errors

    def wait(self, seconds: float, look: Callable[[], None] = lambda: None) -> bool:
        """Wait at most `seconds` until all programs are done; return whether they are.

        A signal interrupts the wait, as usual in Python. `look` is called regularly.
        """
        deadline = time.monotonic() + seconds
        pause = _POLL_SECONDS
        self._tokens_done.wait(_POLL_SECONDS)  # usually all there is to wait for
        while not self.is_done():
            if time.monotonic() > deadline:
                return False
            look()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL_SECONDS)
        return True
