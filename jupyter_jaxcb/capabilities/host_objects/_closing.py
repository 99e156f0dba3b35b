"""Close removed objects once nothing refers to them."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from ...recording import HAS_GIL, visible


class Kept:
    """An object that is kept, with what it cost.

    Attributes:
        value: the object.
        nbytes: its memory.
        made_ns: the time that it took to make it.
        since: `time.monotonic` when it was made.
        process: the process that made it; a forked child does not close it.
    """

    __slots__ = ("made_ns", "nbytes", "process", "since", "value")

    def __init__(self, value: Any, nbytes: int, made_ns: int, since: float) -> None:
        self.value, self.nbytes, self.made_ns, self.since = value, nbytes, made_ns, since
        self.process = os.getpid()

    def references(self) -> int:
        """Return the number of references to the object."""
        return sys.getrefcount(self.value)


_ALONE = Kept(object(), 0, 0, 0.0).references()  # with no reference but that of `Kept`
_Close = Callable[[Any], object]
_removed: list[tuple[Kept, _Close, str]] = []  # not closed yet; of the host object named so
_lock = threading.RLock()


def _in_forked_child() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it
    _removed.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)


def is_counted(value: Any) -> bool:
    """Return whether the last use of `value` shows in its reference count."""
    return value is not None and not isinstance(value, int | str | bytes | tuple)


def close_later(kept: list[Kept], close: _Close, name: str) -> list[Exception]:
    """Close removed objects, also those removed earlier, as soon as nothing refers to them.

    Returns:
        The errors of `close`.
    """
    me = os.getpid()
    with _lock:
        _removed.extend((one, close, name) for one in kept if one.process == me)
    return close_unused()


def close_unused(*, all_of_them: bool = False) -> list[Exception]:
    """Close the removed objects to which nothing refers; return the errors of their `close`.

    Without the GIL, a count can miss the reference of a thread, so they are closed at the end.
    """
    if not (HAS_GIL or all_of_them):
        return []
    with _lock:
        ready = [one for one in _removed if all_of_them or one[0].references() <= _ALONE]
        if ready:
            chosen = {id(one) for one, _, _ in ready}
            _removed[:] = [one for one in _removed if id(one[0]) not in chosen]
    errors = []
    try:
        while ready:
            one, close, name = ready.pop()
            try:
                close(one.value)
            except Exception as error:
                note = f"This happened while an object of {name} was closed."
                error.add_note(visible(note))
                errors.append(error)
    finally:  # after an interrupt
        with _lock:
            _removed.extend(ready)
    return errors


def report(errors: list[Exception]) -> None:
    """Report errors of `close` in the background, as Python reports those of threads."""
    for error in errors:
        facts = type(error), error, error.__traceback__, threading.current_thread()
        threading.excepthook(threading.ExceptHookArgs(facts))


@atexit.register
def _close_at_exit() -> None:
    report(close_unused(all_of_them=True))
