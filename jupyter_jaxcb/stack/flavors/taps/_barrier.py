"""The barrier of host_callback: wait for running host functions, and raise postponed errors."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import threading
import traceback
import weakref
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from .... import jax_compat
from ....recording import visible
from ...dispatch import Crossing
from ...errors import HostCallError, add_note, host_error, message_of
from ...interrupt import interrupt_at_exit

_log = logging.getLogger("jupyter_jaxcb.host_callback")


class CallbackException(Exception):
    """Raised by `barrier_wait` if a tap function raised; that exception is its ``__cause__``."""

    __module__ = "jupyter_jaxcb.host_callback"  # where users import it from


class _Depth:
    """The number of our host functions that a thread is inside of right now."""

    def __init__(self) -> None:
        self.count = 0


class _Own(threading.local):
    """The `_Depth` of each thread."""

    def __init__(self) -> None:
        self.depth = _Depth()
        with _changed:
            _depths.add(self.depth)


_changed = threading.Condition()
_depths: weakref.WeakSet[_Depth] = weakref.WeakSet()  # of all threads, changed under `_changed`
_own = _Own()
_waiting = 0  # barriers, in all threads
_last: BaseException | None = None  # raised by a tap, and not yet by a barrier


def counted(cross: Crossing, *, postpone: bool = False) -> Crossing:
    """Wrap `cross` so that barriers wait for it.

    Args:
        cross: the crossing.
        postpone: for a crossing without results: keep its errors for the next barrier. Ctrl-C and
            SystemExit are raised at once.
    """

    def call(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        depth = _own.depth
        depth.count += 1
        try:
            return cross(*operands)
        except HostCallError as error:
            if not postpone:
                raise
            _postpone(error)
            return ()
        finally:
            depth.count -= 1
            # A barrier increments `_waiting` before it reads the depths, so none is missed here.
            if _waiting:
                with _changed:
                    _changed.notify_all()

    return call


def _postpone(error: HostCallError) -> None:
    original = host_error(error)
    if not isinstance(original, Exception):
        raise error
    _keep(original)
    _log.error("a tap function raised; the program goes on", exc_info=original)


def _keep(error: BaseException) -> None:
    global _last
    with _changed:
        _last = error


def barrier(name: str | None = None) -> None:
    """Wait for the host functions of all started computations; see `host_callback`."""
    global _last
    _log.debug("barrier_wait %s: begins", visible(name or ""))
    if not _own.depth.count:  # else it would wait for the host function that calls it
        _wait()
    with _changed:
        error, _last = _last, None
    _log.debug("barrier_wait %s: ends", visible(name or ""))
    if error is not None:
        text = "".join(traceback.format_exception(error))
        add_note(error, "postponed until barrier_wait, which raises CallbackException from it")
        raise CallbackException(
            f"There were exceptions during callback processing. Last one was:\n{text}"
        ) from error


@contextlib.contextmanager
def keeping_errors() -> Iterator[None]:
    """Postpone errors of our host functions that surface while waiting for programs."""
    try:
        yield
    except Exception as error:
        jax_compat.forget_tokens()  # or every later wait raises this again
        original: Any = host_error(error)
        if original is None:
            raise
        _keep(original)


def _wait() -> None:
    global _waiting
    with keeping_errors():
        jax.effects_barrier()
    with _changed:
        _waiting += 1
        try:
            _changed.wait_for(lambda: not any(depth.count for depth in _depths))
        finally:
            _waiting -= 1


@functools.cache
def barrier_at_exit() -> None:
    """Let the process end with a barrier, if it does not yet."""
    atexit.register(_barrier_at_exit)


def _barrier_at_exit() -> None:
    """Run the last barrier of a process, and log its error, which no code could catch."""
    interrupt_at_exit()  # it is registered earlier, so it would come later
    try:
        barrier("at exit")
    except CallbackException as error:
        _log.error("error of a tap that no barrier_wait has raised: %s", visible(message_of(error)))
