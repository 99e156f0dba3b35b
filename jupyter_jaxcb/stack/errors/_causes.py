"""Attach the host exception as `__cause__` of the error JAX raises.

Nothing in JAX or Python is patched before the first host function fails.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import threading
import time

import jax

from ... import jax_compat
from ...recording import Site
from ..trace import JAX_FOLDER, frames_of_threads
from . import _hooks
from ._error_text import is_a
from ._store import KeptError, error_number_in, kept_error_in


class EndedError(KeyboardInterrupt):
    """Raised in a host call that was running when its run was interrupted.

    A KeyboardInterrupt, so that ``except Exception`` does not swallow it. Code that later asks for
    a result of that run gets JAX's error with this exception as its cause.
    """

    def __init__(self, message: str = "its run was interrupted") -> None:
        super().__init__(message)


class NotCalledError(EndedError):
    """A host call was not made because its run was interrupted."""


# After a failure on one of several devices, warn about a possible deadlock after this long.
PATIENCE_SECONDS = 5.0
_NOBODY_WAITED = "A host function failed in a program whose result was never waited for:"

_pending: dict[int, Site] = {}  # by number: raised by a host function, not yet by JAX
_new: collections.deque[KeptError] = collections.deque(maxlen=1)  # the last one JAX raised
_raised: collections.deque[tuple[Site | None, float]] = collections.deque(maxlen=100)  # and when
_watched: set[Site] = set()
_undo: contextlib.ExitStack | None = None
_lock = threading.Lock()


def expect(kept: KeptError, site: Site, *, others_may_wait: bool) -> None:
    """Give the error that JAX is about to raise for a failed host function its cause.

    Args:
        kept: the host function's exception.
        site: the site of the call.
        others_may_wait: whether it failed on one of several devices that each make the call.
    """
    global _undo
    with _lock:
        _pending[kept.number] = site
        while len(_pending) > 1_000:  # from programs that are never waited for
            _pending.pop(next(iter(_pending)), None)
        if _undo is None:
            _undo = contextlib.ExitStack()
            _undo.callback(jax_compat.intercept_errors(_intercept))
            _undo.callback(_hooks.show_uncaught())
            _undo.callback(_hooks.unwatch_errors)
    _hooks.watch_errors(_intercept)
    if others_may_wait:
        _watch_others(kept, site)


def _watch_others(kept: KeptError, site: Site) -> None:
    """Start one timer per site: further failures at the site would give the same warning."""
    if site in _watched:
        return
    timer = threading.Timer(PATIENCE_SECONDS, _warn_if_others_wait, (kept, site))
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # out of threads, or Python is shutting down
        timer.start()
        _watched.add(site)


def forget_error(number: int) -> None:
    """Stop expecting an error of JAX's for the host error `number`."""
    _pending.pop(number, None)
    if not _pending:
        _hooks.unwatch_errors()


def stop_attaching_causes() -> None:
    """Undo the patches of JAX and Python, until the next host function fails."""
    global _undo
    with _lock:
        undo, _undo = _undo, None
    if undo is not None:
        undo.close()


def _intercept(message: str) -> tuple[str, BaseException] | None:
    """Return the message and the cause of JAX's error `message`; None if it is not a host error."""
    kept = kept_error_in(message)
    if kept is None or threading.current_thread().name == jax_compat.TOKEN_CHECK_THREAD:
        return None
    if kept.number in _pending:
        _raised.append((_pending.pop(kept.number, None), time.monotonic()))
        if not kept.of_jax:
            _new.append(kept)
    if not _pending:
        _hooks.unwatch_errors()
    if kept.of_jax:
        BaseException.with_traceback(kept.error, kept.traceback)
        return message, kept.error
    jax_compat.forget_failed_tokens(_is_raised)
    # Ctrl-C is not an error of the program, so raise it as it is. An EndedError belongs to an
    # earlier run and must not interrupt the code that asks for that run's result.
    if not is_a(kept.error, Exception, EndedError):
        raise BaseException.with_traceback(kept.error, kept.traceback)
    return f"INTERNAL: {kept.text}", kept.error


def _is_raised(message: str) -> bool:
    """Return whether JAX has raised that error, or that of the same call on another device."""
    number = error_number_in(message)
    return bool(number) and (number not in _pending or _raised_lately(_pending.get(number)))


def _raised_lately(site: Site | None) -> bool:
    recently = time.monotonic() - 2 * PATIENCE_SECONDS
    return any(other == site and at > recently for other, at in list(_raised))


def _warn_if_others_wait(kept: KeptError, site: Site) -> None:
    _watched.discard(site)
    if _raised_lately(site):
        _pending.pop(kept.number, None)  # if several devices fail, JAX raises the error of one
        if not _pending:
            _hooks.unwatch_errors()
    elif kept.number in _pending and _anything_waits():
        _hooks.show(
            kept.error,
            kept.traceback,
            f"A host function failed on one of several devices {PATIENCE_SECONDS:g} s ago, and JAX "
            "has not raised its error yet. If the other devices wait for this one in a collective, "
            "XLA will abort the process; restart the kernel. The error is:",
        )


def _anything_waits() -> bool:
    """Return whether anything is being computed, or a thread is inside JAX."""
    if jax_compat.unfinished_arrays():
        return True
    innermost = (frame.f_code.co_filename for frame in frames_of_threads().values())
    return any(file.startswith(JAX_FOLDER) for file in innermost)


def _wait_at_exit() -> None:
    """Wait for effects at exit, as JAX does, but show a pending host error once, unwrapped."""
    failing = True
    while failing:
        _new.clear()
        try:
            jax.effects_barrier()
        except Exception:
            failing = bool(_new)  # an error that is not ours is reported by JAX
        except BaseException:
            if not _new:  # Ctrl-C during this wait: stop waiting
                raise
        else:
            failing = False
        for kept in _new:
            _hooks.show(kept.error, kept.traceback, _NOBODY_WAITED)


atexit.register(_wait_at_exit)
