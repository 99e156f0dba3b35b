"""Wait for queued calls: in JAX's barriers, after a cell and when Python ends; report failures."""

from __future__ import annotations

import atexit
import functools
import math
import os
import sys
import time
import warnings
from collections.abc import Callable

import jax

from ... import jax_compat
from ...recording import visible
from ...stack.errors import add_note, is_a, show
from ...stack.interrupt import InFlight, finish_before_executors_end, interrupt, interrupt_at_exit
from ._queue import Failures, queue


class Unfinished(InFlight):
    """As `InFlight`, but done only when the calls that the programs queued are made, too."""

    def __init__(self) -> None:
        super().__init__()
        self._last: int | None = None  # number of the last crossing queued; None: not known yet
        self._end: float = math.inf  # of the last one that was queued before `end`

    def is_done(self, patience: bool = False) -> bool:
        """Return whether all programs are done, and the calls that they queued."""
        if self._last is None:
            if not super().is_done(patience):
                return False
            self._last = queue.added
        return queue.is_done(self._last)

    def end(self) -> None:
        """End the cell: crossings that are queued from now on belong to a later one."""
        self._end = queue.added

    def includes(self, number: int) -> bool:
        """Return whether the crossing with this number was queued before `end`."""
        return number <= self._end

    def wait(self, seconds: float, look: Callable[[], None] = lambda: None) -> bool:
        """See `InFlight.wait`."""
        with queue.waited_for():
            return super().wait(seconds, look)


_SAY_AFTER_SECONDS = 1.0
_NOBODY_WAITED = "A queued host call failed, and no jax.effects_barrier() has raised its error:"
_ending = False  # whether Python is ending


class QueueFullWarning(UserWarning):
    """Calls of a callback with ``on_full="drop"`` were dropped, and nothing recorded that.

    The message counts them. Record the program to see which calls were dropped, make the queue
    longer (`jupyter_jaxcb.set_queue_limit`), or silence the warning:

    >>> import warnings, jupyter_jaxcb as jaxcb
    >>> warnings.filterwarnings("ignore", category=jaxcb.QueueFullWarning)
    """


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
    if queue.is_own_thread():
        return
    queue.wait()
    dropped = queue.take_dropped()
    if dropped:
        warnings.warn(
            f"the queue was full, so it dropped {dropped}. Pass on_full='wait', or "
            "raise the limit with jaxcb.set_queue_limit.",
            QueueFullWarning,
            stacklevel=2,
        )
    failures = queue.take_failures()
    if failures is None:
        return
    error = _noted(failures)
    if _ending:
        show(error, failures.first.traceback, _NOBODY_WAITED)
    elif is_a(error, Exception):
        raise jax.errors.JaxRuntimeError(f"INTERNAL: {failures.first.text}") from error
    else:  # SystemExit: not an error of the program
        raise error


def _noted(failures: Failures) -> BaseException:
    note = "queued calls that failed after it: "
    if failures.more:
        add_note(failures.first.error, f"{note}{failures.more:,}", instead_of=note)
    return failures.first.error


def _settle_at_exit() -> None:
    """Finish the programs and make the queued calls before Python ends; Ctrl-C drops them."""
    global _ending
    _ending = True
    interrupt_at_exit()  # it is registered earlier, so it would come later
    begun, said = time.monotonic(), False

    def say() -> None:
        nonlocal said
        if not said and time.monotonic() - begun > _SAY_AFTER_SECONDS:
            said = True
            calls = queue.waiting_calls()
            what = f"making {calls}" if calls else "making the last queued calls"
            print(visible(f"{what}; Ctrl-C drops them"), file=sys.stderr)

    try:
        Unfinished().wait(math.inf, say)
    except KeyboardInterrupt:
        interrupt()
        print(visible(f"dropped {queue.drop()}"), file=sys.stderr)
    settle()
