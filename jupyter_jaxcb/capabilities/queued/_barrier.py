"""Wait for queued calls: in JAX's barriers, after a cell and when Python ends; report failures."""

from __future__ import annotations

import atexit
import functools
import math
import os
import sys
import time
import warnings

import jax

from ... import jax_compat
from ...recording import visible
from ...stack.errors import KeptError, add_note, is_a, show
from ...stack.interrupt import InFlight, finish_before_executors_end, interrupt, interrupt_at_exit
from ._queue import QueuedCalls, queue

_SAY_AFTER_SECONDS = 1.0


class QueueFullWarning(UserWarning):
    """Calls of a callback with ``on_full="drop"`` were dropped, and nothing recorded that.

    The message counts them. Record the program to see which calls were dropped, make the queue
    longer (`jupyter_jaxcb.set_queue_limit`), or silence the warning:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.QueueFullWarning)
    """


class Unfinished(InFlight):
    """As `InFlight`, but done only when the calls that the programs queued are made, too."""

    _last: int | None = None  # the mark behind the last crossing; None: not known yet
    _end: int | None = None  # the mark behind the last one before `end`

    def is_done(self, patience: bool = False) -> bool:
        """Return whether all programs are done, and the calls that they queued."""
        if self._last is None and super().is_done(patience):
            self._last = queue.mark()
        return self._last is not None and queue.is_over(self._last)

    def end(self) -> None:
        """End the cell: crossings that are queued from now on belong to a later one."""
        self._end = queue.mark()

    def is_delivering(self) -> bool:
        """Return whether the queue's thread makes a call that was queued before `end`."""
        return self._end is None or not queue.is_over(self._end)


@functools.cache
def wait_in_barriers() -> None:
    """Make `jax.effects_barrier` and the end of Python wait for queued calls from now on."""
    jax_compat.after_barriers(queue.wait, settle)
    os.register_at_fork(after_in_child=queue.begin)
    atexit.register(_settle_at_exit)
    finish_before_executors_end.append(_settle_at_exit)


def settle() -> None:
    """Wait until the calls queued so far are made, and report the failures among them.

    In a queued call this does nothing: it would wait for itself.

    Raises:
        jax.errors.JaxRuntimeError: one of them failed; a note counts the others.
    """
    __tracebackhide__ = True
    failure = None if queue.is_own_thread() else _failure()
    if failure is not None and is_a(failure.error, Exception):
        raise jax.errors.JaxRuntimeError(f"INTERNAL: {failure.text}") from failure.error
    if failure is not None:
        raise failure.error  # SystemExit: not an error of the program


def _failure() -> KeptError | None:
    """Wait for the queue and return what failed first, with a note that counts other failures."""
    queue.wait()
    with queue.lock:
        dropped, queue.dropped = queue.dropped, QueuedCalls()
    if dropped:
        warnings.warn(
            f"the queue was full, so it dropped {dropped}. Pass on_full='wait', or "
            "raise the limit with jaxcb.set_queue_limit.",
            QueueFullWarning,
            stacklevel=3,
        )
    failure, later = queue.take_failures()
    if failure is not None and later:
        note = "queued calls that failed after it: "
        add_note(failure.error, f"{note}{later:,}", instead_of=note)
    return failure


def _settle_at_exit() -> None:
    """Finish the programs and make the queued calls before Python ends; Ctrl-C drops them."""
    interrupt_at_exit()  # it is registered earlier, so it would come later
    silent_until = time.monotonic() + _SAY_AFTER_SECONDS

    def say() -> None:
        nonlocal silent_until
        if time.monotonic() > silent_until:
            silent_until = math.inf
            calls = queue.waiting_calls() or "the last queued calls"
            print(visible(f"making {calls}; Ctrl-C drops them"), file=sys.stderr)

    try:
        Unfinished().wait(math.inf, say)
    except KeyboardInterrupt:
        interrupt()
        print(visible(f"dropped {queue.drop()}"), file=sys.stderr)
    failure = _failure()
    if failure is not None:
        what = "A queued host call failed, and no jax.effects_barrier() has raised its error:"
        show(failure.error, failure.traceback, what)
