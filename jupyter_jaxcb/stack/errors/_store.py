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

from ._error_text import attribute_of, describe, is_a, message_of, name_of_class, plain
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
        text: the message of the error raised into XLA; ends with a mark that has the number. For
            one of JAX's own callbacks, what the message of JAX's error contains.
        during: what was running at the time, see `set_running_reporter`.
        of_jax: whether one of JAX's own callbacks failed. The errors that JAX raises for these
            keep their class and message.
    """

    number: int
    error: BaseException
    traceback: TracebackType | None
    text: str
    during: str
    of_jax: bool = False


_kept: dict[int, KeptError] = {}
_raised_by: collections.OrderedDict[int, int] = collections.OrderedDict()  # number: thread
_numbers = itertools.count(1)
_lock = threading.RLock()  # reentrant: a destructor run by the garbage collector may come here
_running: Callable[[], str] | None = None
_own = threading.local()  # .during: what was running when this thread's queued call was queued
_OBSERVED = ", in call_observed\n"  # the frame of an observed call, as C++ writes it into a message
_MARK = re.compile(r"; jaxcb host error (\d+)\]")


def keep(error: BaseException, note: str) -> KeptError:
    """Keep `error`; `note` says where it happened."""
    number = next(_numbers)
    text = plain(f"{describe(error)} [{note}; jaxcb host error {number}]")
    return _keep(number, error, attribute_of(error, "__traceback__"), text, of_jax=False)


def keep_of_jax(error: BaseException, traceback: TracebackType | None) -> KeptError:
    """Keep the `error` that one of JAX's own callbacks raises, with the frames to show for it."""
    text = _end_of_traceback(error)
    return _keep(next(_numbers), error, traceback, text, of_jax=True)


def _end_of_traceback(error: BaseException) -> str:
    """Return the end of the traceback of `error`, as C++ writes it into a message."""
    innermost = attribute_of(error, "__traceback__")
    while innermost.tb_next is not None:
        innermost = innermost.tb_next
    message, _, _ = message_of(error).partition("\0")
    return f", in {innermost.tb_frame.f_code.co_name}\n{name_of_class(error)}: {message}"


def _keep(
    number: int, error: BaseException, traceback: TracebackType | None, text: str, of_jax: bool
) -> KeptError:
    thread, during = threading.get_ident(), getattr(_own, "during", None)
    during = running_now() if during is None else during
    kept = KeptError(number, error, traceback, text, during, of_jax)
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
    """Return the exception for which JAX raises an error with that message, if it is still kept."""
    number = error_number_in(message)
    return error_by_number(number) if number else _kept_of_jax_in(message)


def _kept_of_jax_in(message: str) -> KeptError | None:
    """As `kept_error_in`, for JAX's own callbacks, whose exceptions have no mark.

    Several calls may have failed alike. Then it is the last one of this thread, on which the
    host function of a small program runs, or else the last one.
    """
    if _OBSERVED not in message:  # a call that was not observed may have failed alike
        return None
    thread = threading.get_ident()
    with _lock:
        found = [kept for kept in _kept.values() if kept.of_jax and kept.text in message]
        # One host function may have called another: the longer text has the error of both.
        rank = [(len(kept.text), _raised_by[kept.number] == thread, kept.number) for kept in found]
    return found[rank.index(max(rank))] if found else None


def host_error(error: BaseException | None, *, chained: bool = True) -> BaseException | None:
    """Return the exception a host function raised, given the error JAX raised for it.

    Args:
        error: any exception caught around a JAX computation, or None.
        chained: follow ``__cause__``, instead of looking at `error` alone.

    Returns:
        The original exception with its own traceback. None if no callback raised it, of this
        package or one of JAX's while it was observed. None also if at least 16 host calls have
        failed on its thread since, and the error has no ``__cause__`` (it came from JAX's C++ fast
        path) or is that of one of JAX's callbacks.

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
        message = message_of(error)
        with _lock:
            if any(error is kept.error for kept in _kept.values()):
                return error
            kept = kept_error_in(message)
            if kept is not None:
                return kept.error
        cause = attribute_of(error, "__cause__")
        if error_number_in(message) and cause is not None:  # no longer kept, but still attached
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
        The exception and its traceback; None if no callback raised it, of this package or one of
        JAX's while it was observed.
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
