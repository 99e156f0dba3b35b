"""The watchdog that prints what a program waits for."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import math
import numbers
import os
import sys
import threading
from typing import NoReturn

from ... import jax_compat
from ...recording import visible
from ._ctrl_c import INTERRUPTED, CtrlC, leave_at_next_interrupt
from ._diagnosis import Hang, stacks_of_threads
from ._watchdog import Watchdog

_lock = threading.Lock()
_watching: list[_Watching] = []  # the last one is on


def watchdog(seconds: float = 30.0) -> contextlib.AbstractContextManager[None]:
    """Print what the program waits for when no host call returns for some time.

    If at least one host call is running, but none has begun or returned for `seconds`, this prints
    to stderr which one, its line, and whether it looks like a deadlock, a slow function, or a wait
    for a lock, the GIL, another device or the program behind a full queue; then the Python stacks
    of all threads. If no host call is running, but the main thread waits on CPU for a recorded
    program with host calls, this prints its line, whether it computes, and the last host call.
    Again only after a call has begun or returned, which is printed too. Nothing is ended.

    In a script whose main thread waits in C++, Ctrl-C then works. The first one prints what it
    waits for, and ends host functions in Python; the second one prints the stacks, and ends the
    process with status 130. The same holds if the main thread gets KeyboardInterrupt, and a second
    later waits for threads of your own that are in host calls. That needs a call in the main
    thread, and no handler of Ctrl-C of your own.

    Call it once for the rest of the process, or use it as a context manager for a block. A later
    one replaces it, until the end of its block; ``jaxcb.watchdog(math.inf)`` only ends it. JAX's
    own callbacks are watched while they are observed, see `observe_jax`. The watchdog looks every
    second, on a thread of its own; host calls are not slower.

    Args:
        seconds: how long no host call may begin or return. What is wrong is printed at most a
            second later. A deadlock that is certain, because the call is inside JAX and nothing
            computes, is printed after 5 seconds. A function in C that holds the GIL delays it.

    Returns:
        A context manager. The watchdog begins at once, also without a ``with`` block.

    Raises:
        ValueError: `seconds` is not a number above 0.

    >>> import jupyter_jaxcb as jaxcb
    >>> with jaxcb.watchdog(seconds=30):
    ...     pass  # run the program
    """
    is_number = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    if not is_number or not seconds > 0:
        raise ValueError(f"seconds is {seconds!r}, not a number above 0. Try seconds=30.")
    return _Watching(Watchdog(seconds, _print_hang, _print_end))


def watchdog_and_timer(seconds: float) -> contextlib.ExitStack:
    """As `watchdog`, but also print the stacks if Python itself cannot run for twice that time.

    Python cannot run while a function in C holds the GIL. This uses the only timer of
    `faulthandler`. The caller handles Ctrl-C.
    """
    stderr = sys.stderr
    block = contextlib.ExitStack()
    block.callback(faulthandler.cancel_dump_traceback_later)

    def rearm() -> None:
        faulthandler.dump_traceback_later(2 * seconds, file=stderr)

    dog = Watchdog(seconds, _print_hang, _print_end, looks=rearm)
    block.enter_context(_Watching(dog, ctrl_c=False))
    return block


class _Watching:
    """A watchdog that runs until the end of a block; without a block, until the next one.

    Args:
        dog: the watchdog; one with infinite seconds does not watch.
        ctrl_c: whether Ctrl-C is handled while it watches.
    """

    def __init__(self, dog: Watchdog, ctrl_c: bool = True) -> None:
        self._dog, self._ctrl_c = dog, ctrl_c
        with _lock:
            if _watching:
                _watching[-1]._dog.stop()
            _watching.append(self)
            self._watch()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        with _lock:
            self._dog.stop()
            was_on = self is _watching[-1]
            _watching.remove(self)
            if was_on and _watching:
                _watching[-1]._watch()
            elif was_on:
                _ctrl_c.__exit__()

    def _watch(self) -> None:
        if self._dog.seconds == math.inf:
            _ctrl_c.__exit__()
            return
        self._dog.start()
        if self._ctrl_c and not hasattr(sys, "ps1") and not sys.flags.interactive:
            _ctrl_c.__enter__()
            atexit.unregister(_at_exit)
            atexit.register(_at_exit)


def _leave() -> NoReturn:
    """Print the stacks of all threads, and end the process, whose exit handlers would wait."""
    try:
        _say(stacks_of_threads())
        sys.stdout.flush()
    finally:
        os._exit(INTERRUPTED)


def _say(text: str) -> None:
    print(visible(f"\n{text}"), file=sys.stderr, flush=True)


def _at_exit() -> None:
    """Say what Python waits for at its end; it has already waited for threads."""
    is_interrupted = issubclass(getattr(sys, "last_type", None) or Exception, KeyboardInterrupt)
    if is_interrupted and jax_compat.unfinished_arrays():
        leave_at_next_interrupt(_say)


_ctrl_c = CtrlC(_say, _leave)


def _print_hang(hang: Hang) -> None:
    begin = f"No host call has begun or returned for {hang.seconds:.1f} s."
    _say(f"{begin}\n{hang.text}\n\n{hang.stacks}")


def _print_end() -> None:
    print("\nThe host calls go on.", file=sys.stderr, flush=True)
