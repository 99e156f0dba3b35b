"""What host functions of host_callback leave behind: the last error, and who still runs."""

from __future__ import annotations

import contextlib
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from . import _jax
from ._errors import HostCallError
from ._kept import host_error

_log = logging.getLogger("jupyter_jaxcb.host_callback")


class CallbackException(Exception):
    """A tap function raised; `barrier_wait` raises this, with the exception as its cause."""


class _Depth(threading.local):
    """How many of our host functions this thread is in right now."""

    count = 0


_depth = _Depth()
_running = 0  # host functions, in all threads
_changed = threading.Condition()
_last: BaseException | None = None  # that a tap raised, and no barrier has told


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Around a host function: barriers wait for it."""
    global _running
    with _changed:
        _running += 1
    _depth.count += 1
    try:
        yield
    finally:
        _depth.count -= 1
        with _changed:
            _running -= 1
            _changed.notify_all()


def postponing(cross: Callable[..., tuple]) -> Callable[..., tuple[np.ndarray, ...]]:
    """`cross`, which answers nothing, with its errors kept for the next barrier.

    What is no `Exception` (Ctrl-C, SystemExit) is raised at once.
    """

    def call(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        with running():
            try:
                return cross(*operands)
            except HostCallError as error:
                original = host_error(error)
                if not isinstance(original, Exception):
                    raise
                _keep(original)
                _log.error("a tap function raised; the program goes on", exc_info=original)
                return ()

    return call


def counted(cross: Callable[..., tuple]) -> Callable[..., tuple[np.ndarray, ...]]:
    """`cross`, waited for by barriers."""

    def call(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        with running():
            return cross(*operands)

    return call


def _keep(error: BaseException) -> None:
    global _last
    with _changed:
        _last = error


def barrier(name: str | None = None) -> None:
    """Waits for host functions of computations that were started; see `host_callback`."""
    global _last
    _log.debug("barrier_wait %s: begins", name or "")
    if not _depth.count:  # else it would wait for the host function that calls it
        _wait()
    with _changed:
        error, _last = _last, None
    _log.debug("barrier_wait %s: ends", name or "")
    if error is not None:
        told = "".join(traceback.format_exception(error))
        raise CallbackException(
            f"there were exceptions during callback processing. The last one was:\n{told}"
        ) from error


@contextlib.contextmanager
def keeping_errors() -> Iterator[None]:
    """Around a wait for programs: what a call of ours has raised there waits for a barrier."""
    try:
        yield
    except Exception as error:
        _jax.forget_tokens()  # or every later wait raises this again
        original: Any = host_error(error)
        if original is None:
            raise
        _keep(original)


def _wait() -> None:
    with keeping_errors():
        jax.effects_barrier()
    with _changed:
        _changed.wait_for(lambda: _running == 0)


def barrier_at_exit() -> None:
    """The last barrier of a process: nobody is left to catch what it raises."""
    try:
        barrier("at exit")
    except CallbackException as error:
        _log.error("no barrier_wait was there to tell: %s", error)
