"""What JAX raises for a failed host function is met on its way to the user.

Nothing of JAX or Python is changed before the first host function fails.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import threading
import time

import jax

from ...recording import Site
from .. import jax_compat
from ..core import JAX_FOLDER, frames_of_threads
from . import _excepthooks, _monitoring
from ._classes import EndedError
from ._store import Kept, error_number_in, kept_error_in

# After which a program over several devices is said to go on, though one of them failed.
PATIENCE_SECONDS = 5.0
_NOBODY_WAITED = "A host function failed in a program that nobody waited for:"

_unseen: dict[int, Site] = {}  # by number: raised by a host function, not yet by JAX
_new: collections.deque[Kept] = collections.deque(maxlen=1)  # the last one that JAX raised
_met: collections.deque[tuple[Site | None, float]] = collections.deque(maxlen=100)  # and when
_watched: set[Site] = set()
_undo: contextlib.ExitStack | None = None
_lock = threading.Lock()


def expect(kept: Kept, site: Site, *, others_may_wait: bool) -> None:
    """A host function has failed; what JAX raises for it is to have it as its cause.

    Args:
        kept: its exception.
        site: of the call.
        others_may_wait: it failed on one of several devices that each make the call.
    """
    global _undo
    with _lock:
        _unseen[kept.number] = site
        while len(_unseen) > 1_000:  # of programs that nobody waits for
            _unseen.pop(next(iter(_unseen)), None)
        if _undo is None:
            _undo = contextlib.ExitStack()
            _undo.callback(jax_compat.intercept_errors(_meet))
            _undo.callback(_excepthooks.show_uncaught())
            _undo.callback(_monitoring.unwatch)
    _monitoring.watch(_meet)
    if others_may_wait:
        _watch_others(kept, site)


def _watch_others(kept: Kept, site: Site) -> None:
    """One timer a site: others that fail meanwhile have the same to say."""
    if site in _watched:
        return
    timer = threading.Timer(PATIENCE_SECONDS, _say_what_others_wait_for, (kept, site))
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # no more threads, or Python is about to end
        timer.start()
        _watched.add(site)


def forget_error(number: int) -> None:
    """Expects nothing for the error `number` any more."""
    _unseen.pop(number, None)
    if not _unseen:
        _monitoring.unwatch()


def stop_attaching_causes() -> None:
    """Puts back what was changed in JAX and Python, until the next host function fails."""
    global _undo
    with _lock:
        undo, _undo = _undo, None
    if undo is not None:
        undo.close()


def _meet(message: str) -> tuple[str, BaseException] | None:
    """Message and cause of the error that JAX raises with `message`, if it is one of ours."""
    kept = kept_error_in(message)
    if kept is None or threading.current_thread().name == jax_compat.TOKEN_CHECK_THREAD:
        return None
    if kept.number in _unseen:
        _met.append((_unseen.pop(kept.number, None), time.monotonic()))
        _new.append(kept)
    if not _unseen:
        _monitoring.unwatch()
    jax_compat.forget_failed_tokens(_is_seen)
    # Ctrl-C is no error of the program; that of an earlier run is none of who asks for its result.
    if not isinstance(kept.error, (Exception, EndedError)):
        raise BaseException.with_traceback(kept.error, kept.traceback)
    return f"INTERNAL: {kept.text}", kept.error


def _is_seen(message: str) -> bool:
    """Whether JAX has raised that error, or one of another device where the same call failed."""
    number = error_number_in(message)
    return bool(number) and (number not in _unseen or _met_lately(_unseen.get(number)))


def _met_lately(site: Site | None) -> bool:
    recently = time.monotonic() - 2 * PATIENCE_SECONDS
    return any(other == site and at > recently for other, at in list(_met))


def _say_what_others_wait_for(kept: Kept, site: Site) -> None:
    _watched.discard(site)
    if _met_lately(site):
        _unseen.pop(kept.number, None)  # where several devices fail, JAX raises the error of one
        if not _unseen:
            _monitoring.unwatch()
    elif kept.number in _unseen and _somebody_waits():
        _excepthooks.show(
            kept.error,
            kept.traceback,
            f"{PATIENCE_SECONDS:g} s ago a host function failed on one of several devices, and "
            "nobody has seen its error yet. If its program goes on to a collective, the other "
            "devices wait in there for this one, until XLA aborts the process; restart the kernel. "
            "The error is:",
        )


def _somebody_waits() -> bool:
    """Whether anything is being computed, or a thread has called into JAX."""
    if jax_compat.unfinished_arrays():
        return True
    innermost = (frame.f_code.co_filename for frame in frames_of_threads().values())
    return any(file.startswith(JAX_FOLDER) for file in innermost)


def _wait_at_exit() -> None:
    """As JAX does at exit, but an error that nobody saw is shown once, as the user's own."""
    failing = True
    while failing:
        _new.clear()
        try:
            jax.effects_barrier()
        except Exception:
            failing = bool(_new)  # if not, it is none of ours and JAX is going to say it
        except BaseException:
            if not _new:  # Ctrl-C while this waits: what is left is not waited for
                raise
        else:
            failing = False
        for kept in _new:
            _excepthooks.show(
                kept.error,
                kept.traceback,
                _NOBODY_WAITED,
            )


atexit.register(_wait_at_exit)
