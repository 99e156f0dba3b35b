"""Keep the exceptions of host functions, and find them again from the errors JAX raises."""

from __future__ import annotations

import collections
import contextlib
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from ..core import attribute_of, describe, is_a, message_of, plain
from ._tracebacks import user_frames

# How many exceptions are kept per thread and in all: each keeps its traceback alive, and with it
# the arrays in its frames. The limit is per thread, so that failures in one thread do not push out
# the exception another thread is about to look up.
KEPT = 16
KEPT_IN_ALL = 256


class KeptError(NamedTuple):
    """An exception of a host function.

    Attributes:
        number: counts the host errors of this process.
        error: the exception.
        traceback: its frames, starting with the host function's.
        text: the message of the error raised into XLA; ends with a mark that has the number.
        during: what was running at the time, see `set_running_reporter`.
    """

    number: int
    error: BaseException
    traceback: TracebackType | None
    text: str
    during: str


_kept: dict[int, KeptError] = {}
_raised_by: collections.OrderedDict[int, int] = collections.OrderedDict()  # number: thread
_numbers = itertools.count(1)
_lock = threading.RLock()  # reentrant: a destructor run by the garbage collector may come here
_running: Callable[[], str] | None = None
_own = threading.local()  # .during: what was running when this thread's queued call was queued
_MARK = re.compile(r"; jaxcb host error (\d+)\]")


def keep(error: BaseException, note: str) -> KeptError:
    """Keep `error`; `note` says where it happened."""
    number, thread = next(_numbers), threading.get_ident()
    text = plain(f"{describe(error)} [{note}; jaxcb host error {number}]")
    during = getattr(_own, "during", None)
    during = running_now() if during is None else during
    kept = KeptError(number, error, attribute_of(error, "__traceback__"), text, during)
    dropped = []  # freed outside the lock: destructors of objects in their frames may do anything
    with _lock:
        _kept[number], _raised_by[number] = kept, thread
        own = [n for n, by in _raised_by.items() if by == thread]
        for old in own[:-KEPT] or list(_raised_by)[:-KEPT_IN_ALL]:
            dropped.append(_kept.pop(old))
            del _raised_by[old]
    return kept


def set_running_reporter(running: Callable[[], str] | None) -> None:
    """Set the function that names what is running when a host function fails, such as a cell."""
    global _running
    _running = running


def running_now() -> str:
    """Return what is running now, such as a cell; empty if unknown."""
    return _running() if _running else ""


@contextlib.contextmanager
def failing_while(during: str) -> Iterator[None]:
    """Make errors that this thread keeps in the block belong to what was running earlier."""
    _own.during = during
    try:
        yield
    finally:
        _own.during = None


def failed_while(error: BaseException) -> str:
    """Return what was running when the host function raised `error`; empty if unknown."""
    with _lock:
        during = [kept.during for kept in _kept.values() if kept.error is error]
    return during[-1] if during else ""


def error_by_number(number: int) -> KeptError | None:
    """Return the exception with that number, if it is still kept."""
    with _lock:
        return _kept.get(number)


def kept_error_in(message: str) -> KeptError | None:
    """Return the exception whose mark is in `message`, if it is still kept."""
    number = error_number_in(message)
    return error_by_number(number) if number else None


def host_error(error: BaseException | None, *, chained: bool = True) -> BaseException | None:
    """Return the exception a host function raised, given the error JAX raised for it.

    Args:
        error: any exception caught around a JAX computation, or None.
        chained: follow ``__cause__``, instead of looking at `error` alone.

    Returns:
        The original exception with its own traceback. None if no callback of this package raised
        it, or if the error has no ``__cause__`` (it came from JAX's C++ fast path) and at least 16
        host calls have failed on its thread since.

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
        cause = attribute_of(error, "__cause__")
        if number and cause is not None:  # no longer kept, but still attached
            return cause
        if is_a(error, BaseExceptionGroup):  # JAX 0.12's barrier raises it for many effects
            group: Any = error
            inside = (host_error(one, chained=chained) for one in group.exceptions)
            return next(filter(None, inside), None)
        error = cause if chained else None
    return None


def error_for_user(
    error: BaseException | None, tb: TracebackType | None
) -> tuple[BaseException, TracebackType | None] | None:
    """Return what to show instead of `error`: the host exception and the user's frames.

    Args:
        error: the exception that was raised, JAX's or the host function's own.
        tb: its traceback.

    Returns:
        The exception and its traceback; None if no callback of this package raised it.
    """
    original = host_error(error, chained=False)
    if original is None:
        return None
    with _lock:
        own = [kept.traceback for kept in _kept.values() if kept.error is original]
    return original, user_frames(tb, own[-1] if own else attribute_of(original, "__traceback__"))


def error_number_in(message: str) -> int:
    """Return the number of the host error that `message` belongs to; 0 for none."""
    # The last mark: earlier ones are part of the message of the host function's exception.
    marks = _MARK.findall(message)
    return int(marks[-1]) if marks else 0
