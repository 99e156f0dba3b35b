"""A uniform interface to every kind of executor."""

from __future__ import annotations

import concurrent.futures
import contextvars
import functools
import os
import time
from collections.abc import Callable
from typing import Any

from ...stack.errors import describe
from ...stack.options import value_word
from ._options import is_shut_down, leaves_process, stays_on_machine

_LOST = {"BrokenExecutor", "KilledWorker", "EngineError"}  # classes that report a lost worker
_LOOK_AGAIN_SECONDS = 5.0  # how long a count of workers is reused
_AHEAD, _AHEAD_AWAY = 2, 4  # chunks in flight for each worker: local, over a network
_TARGET_NS = 5_000_000  # least duration of the batch elements in one chunk


class ExecutorError(RuntimeError):
    """An executor rejects work or cannot be reached; the message says what to do.

    To make the calls in this process if the executor cannot be used:

    >>> import numpy as np, jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb
    >>> def double(x):
    ...     return 2 * x
    >>> executor = "threads:2"
    >>> f = jaxcb.pure(double, result="x", executor=executor)
    >>> try:
    ...     y = jax.vmap(f)(jnp.arange(3.0))
    ... except jaxcb.ExecutorError:
    ...     y = jax.vmap(jaxcb.pure(double, result="x"))(jnp.arange(3.0))
    >>> y
    Array([0., 2., 4.], dtype=float32)
    """


class WorkerLostError(RuntimeError):
    """A worker died while it was running a batch element.

    The message names the batch element. To run it again in another worker, up to twice:

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> f = jaxcb.pure(np.sin, result="x", executor="processes:2", retries=2)
    """


def cores() -> int:
    """Return the number of CPU cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


class Engine:
    """An executor.

    Args:
        executor: an object with the interface of `concurrent.futures.Executor`.
        named: the executor as the user passed it, for messages.
        workers: returns the number of workers; None to read it off the executor.
        target_ns: least duration of the batch elements in one chunk; None for a local executor.
        make: makes a replacement for a broken executor; None if the executor is the user's.
        gone: returns what is wrong with the connection, or an empty string.

    Attributes:
        travels: whether batch elements leave the process; None if unknown.
        near: whether they are known to run in other processes of this machine.
        by_value: whether it cannot pickle classes that its workers cannot import.
        ahead: the number of chunks in flight for each worker.
        marks: whether its workers have been seen to write on the board of this machine.
    """

    def __init__(
        self,
        executor: Any,
        named: Any,
        *,
        workers: Callable[[], int] | None = None,
        target_ns: int | None = None,
        make: Callable[[], Any] | None = None,
        gone: Callable[[], str] = str,
    ) -> None:
        self.executor = executor
        self.word = f"executor={value_word('executor', named)}"
        self.travels = leaves_process(named)
        self.near = stays_on_machine(named)
        self.by_value = isinstance(named, concurrent.futures.ProcessPoolExecutor)
        self.target_ns = target_ns or _TARGET_NS
        self.ahead = _AHEAD if target_ns is None else _AHEAD_AWAY
        self.make = make
        self.gone = gone
        self.marks = False
        self._killed: Any = None  # the executor whose workers Ctrl-C has killed
        self._count = workers
        self._counted: tuple[float, int] = (0.0, 0)

    @property
    def workers(self) -> int:
        """The number of workers, at least one."""
        if self._count is None:
            known = getattr(self.executor, "_max_workers", None)
            return known if isinstance(known, int) and known > 0 else cores()
        at, count = self._counted
        if not count or time.monotonic() - at > _LOOK_AGAIN_SECONDS:
            try:
                count = max(self._count(), 1)
            except Exception as error:
                raise self.connection_error() or self.submit_error(error) from error
            self._counted = time.monotonic(), count
        return count

    def submit(self, *work: Any) -> concurrent.futures.Future:
        """Submit work; replace the executor if it is ours and broken.

        Raises:
            ExecutorError: if the executor rejects the work.
        """
        if self._killed is self.executor:  # it may not have noticed yet, and accept work
            self.renew()
        if self.travels is False:  # threads see the context variables of the crossing
            work = (functools.partial(contextvars.copy_context().run, work[0]), *work[1:])
        for last in (False, True):
            try:
                future = self.executor.submit(*work)
            except Exception as error:
                if last or self.make is None or not self.renew():
                    raise self.submit_error(error) from error
                continue
            if not hasattr(future, "add_done_callback"):
                raise ExecutorError(
                    f"the submit method of {self.word} returned {type(future).__name__}; it must "
                    "return a concurrent.futures.Future."
                )
            return future
        raise AssertionError("not reached")

    def renew(self) -> bool:
        """Replace the executor if it is ours and rejects work; return whether it was replaced."""
        if self.make is not None and (self.broken or is_shut_down(self.executor)):
            self.executor = self.make()
            return True
        return False

    @property
    def broken(self) -> bool:
        """Whether one of its workers died, and the executor says so, or we have killed it."""
        if self._killed is self.executor:
            return True
        flags = getattr(self.executor, "_flags", None)  # loky's
        return bool(getattr(flags, "broken", None) or getattr(self.executor, "_broken", False))

    def workers_killed(self) -> None:
        """Note that a worker of the executor, which is ours, was killed."""
        self._killed = self.executor

    def cancel(self, future: concurrent.futures.Future | None) -> bool:
        """Cancel work that has not started; return whether it was cancelled.

        Never cancels in a pool that is breaking. Such a pool fails its futures one by one, and in
        Python 3.11 a cancelled future stops that halfway, so that other callers wait forever. (A
        future that anyone cancelled shortly before does the same.)
        """
        return future is not None and not self.broken and future.cancel()

    def submit_error(self, error: BaseException) -> ExecutorError:
        """Return the error to raise when the executor rejects work."""
        text = describe(error)
        if self.lost_worker(error):
            what = f"is broken ({text})"
        elif is_shut_down(self.executor) or "after shutdown" in text:
            what = "is shut down"
        else:
            what = f"rejected the work ({text})"
        return ExecutorError(
            f"{self.word} {what}. Register the callback with a new executor, and keep that open "
            "while the callback is in use."
        )

    def connection_error(self) -> ExecutorError | None:
        """Return the error to raise if the connection is lost; None if it is not."""
        wrong = self.gone()
        if not wrong:
            return None
        return ExecutorError(f"{self.word}: {wrong}. Restart it and connect again.")

    @staticmethod
    def lost_worker(error: BaseException) -> bool:
        """Return whether `error`, raised by a future, means that a worker died."""
        names = {kind.__name__ for kind in type(error).__mro__}
        return bool(_LOST & {*names, getattr(error, "ename", "")})  # ipyparallel wraps it
