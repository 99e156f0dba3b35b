"""The live exceptions of host functions, and the way back to them from what JAX raises."""

from __future__ import annotations

import collections
import itertools
import re
import threading
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple

from ..core import describe, message_of, plain
from ._tracebacks import user_frames

# Exceptions kept, of each thread that raised them: each keeps its traceback, and with it the
# frames' arrays, alive. By thread, so that nobody's is pushed out before he has looked at it.
KEPT = 16
KEPT_IN_ALL = 256


class Kept(NamedTuple):
    """An exception of a host function.

    Attributes:
        number: of it, among all of this process.
        error: the exception.
        traceback: its own frames, the host function's first.
        text: what XLA is told instead; ends with a mark that holds the number.
        during: what was running then, see `set_running_reporter`.
    """

    number: int
    error: BaseException
    traceback: TracebackType | None
    text: str
    during: str


_kept: dict[int, Kept] = {}
_raised_by: collections.OrderedDict[int, int] = collections.OrderedDict()  # number: thread
_numbers = itertools.count(1)
_lock = threading.RLock()  # garbage is collected anywhere, and its destructors may raise
_running: Callable[[], str] | None = None
_MARK = re.compile(r"; jaxcb host error (\d+)\]")
# Colours and the like, and characters that end a text for C++.


def keep(error: BaseException, note: str) -> Kept:
    """Keeps `error`, of which `note` says where it happened."""
    number, thread = next(_numbers), threading.get_ident()
    text = plain(f"{describe(error)} [{note}; jaxcb host error {number}]")
    kept = Kept(number, error, error.__traceback__, text, _running() if _running else "")
    let_go = []  # out of the lock: what dies with their frames may do anything
    with _lock:
        _kept[number], _raised_by[number] = kept, thread
        own = [n for n, by in _raised_by.items() if by == thread]
        for old in own[:-KEPT] or list(_raised_by)[:-KEPT_IN_ALL]:
            let_go.append(_kept.pop(old))
            del _raised_by[old]
    return kept


def set_running_reporter(running: Callable[[], str] | None) -> None:
    """Has `running` asked, when a host function fails, what is running; None: nobody is asked."""
    global _running
    _running = running


def failed_while(error: BaseException) -> str:
    """What was running when the host function raised `error`; empty where nobody knows."""
    with _lock:
        during = [kept.during for kept in _kept.values() if kept.error is error]
    return during[-1] if during else ""


def numbered(number: int) -> Kept | None:
    """The exception of that number, if it is still kept."""
    with _lock:
        return _kept.get(number)


def kept_error_in(message: str) -> Kept | None:
    """The exception whose text stands in `message`, if it is still kept."""
    number = error_number_in(message)
    return numbered(number) if number else None


def host_error(error: BaseException | None, *, chained: bool = True) -> BaseException | None:
    """The exception a host function raised, given the one JAX made of it.

    Args:
        error: any exception caught around a JAX computation, or None.
        chained: look at its causes too, not at `error` alone.

    Returns:
        The original exception with its own traceback; None if no callback of ours raised it (or
        if JAX's C++ raised it and more than 16 others have failed since on its thread).

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> def boom(x):
    ...     raise ValueError("no luck")
    >>> f = jax.jit(lambda x: jaxcb.pure_callback(boom, x, x))
    >>> try:
    ...     f(np.float32(1)).block_until_ready()
    ... except Exception as error:
    ...     print(repr(jaxcb.host_error(error)))
    ValueError('no luck')
    """
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        number = error_number_in(message_of(error))
        with _lock:
            if any(error is kept.error for kept in _kept.values()):
                return error
            if number in _kept:
                return _kept[number].error
        if number and error.__cause__ is not None:  # not kept any more, but its cause
            return error.__cause__
        if isinstance(error, BaseExceptionGroup):  # JAX 0.12's barrier, of several effects
            inside = (host_error(one, chained=chained) for one in error.exceptions)
            return next(filter(None, inside), None)
        error = error.__cause__ if chained else None
    return None


def error_for_user(
    error: BaseException | None, tb: TracebackType | None
) -> tuple[BaseException, TracebackType | None] | None:
    """What to show in place of `error`: the host function's exception, the user's frames.

    Args:
        error: that was raised, JAX's or the host function's own.
        tb: of it.

    Returns:
        None if no callback of ours raised it.
    """
    original = host_error(error, chained=False)
    if original is None:
        return None
    with _lock:
        own = [kept.traceback for kept in _kept.values() if kept.error is original]
    return original, user_frames(tb, own[-1] if own else original.__traceback__)


def error_number_in(message: str) -> int:
    """The number of the host error that `message` is of; 0 for none."""
    # The last one: an earlier mark stands in the message of the host function's exception.
    marks = _MARK.findall(message)
    return int(marks[-1]) if marks else 0
