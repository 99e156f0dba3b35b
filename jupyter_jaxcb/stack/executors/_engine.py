"""What our code asks of an executor, whichever it is."""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Callable
from typing import Any

from ..core import describe, executor_word
from ._options import is_shut_down, leaves_process, stays_on_machine

_LOST = {"BrokenExecutor", "KilledWorker", "EngineError"}  # classes that say: a worker is gone
_LOOK_AGAIN_SECONDS = 5.0
_AHEAD, _AHEAD_AWAY = 2, 4  # chunks in flight for each worker, here and over a network
_TARGET_NS = 5_000_000  # of batch elements that are sent together, at least


class ExecutorError(RuntimeError):
    """An executor that takes no work, or cannot be reached; the message says what to do."""


class WorkerLostError(RuntimeError):
    """The worker that ran a batch element ended in the middle of it."""


def cores() -> int:
    """How many this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


class Engine:
    """An executor.

    Args:
        executor: of `concurrent.futures`' kind.
        named: as the user has it, for messages.
        workers: asks how many there are; None: the executor says.
        target_ns: what batch elements that are sent together should take, at least.
        make: another executor in place of one that broke; None: it is the user's.
        gone: asks what is wrong with what the executor is connected to, if anything.

    Attributes:
        travels: whether batch elements leave the process; None: nobody knows.
        near: whether they are known to go to other processes of this machine.
        by_value: whether it sends nothing of classes that its workers cannot import.
        ahead: chunks that are in flight for each worker.
        marks: whether its workers are seen to write on the board of this machine.
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
        self.word = f"executor={executor_word(named)}"
        self.travels = leaves_process(named)
        self.near = stays_on_machine(named)
        self.by_value = isinstance(named, concurrent.futures.ProcessPoolExecutor)
        self.target_ns = target_ns or _TARGET_NS
        self.ahead = _AHEAD if target_ns is None else _AHEAD_AWAY
        self.make = make
        self.gone = gone
        self.marks = False  # whether its workers can write on the board
        self._count = workers
        self._counted: tuple[float, int] = (0.0, 0)

    @property
    def workers(self) -> int:
        """How many there are, at least one."""
        if self._count is None:
            known = getattr(self.executor, "_max_workers", None)
            return known if isinstance(known, int) and known > 0 else cores()
        at, count = self._counted
        if not count or time.monotonic() - at > _LOOK_AGAIN_SECONDS:
            try:
                count = max(self._count(), 1)
            except Exception as error:
                raise self.connection_error() or self.refused(error) from error
            self._counted = time.monotonic(), count
        return count

    def submit(self, *work: Any) -> concurrent.futures.Future:
        """Hands work over; a broken executor of ours is replaced.

        Raises:
            ExecutorError: it takes none.
        """
        for last in (False, True):
            try:
                future = self.executor.submit(*work)
            except Exception as error:
                if last or self.make is None or not self.renew():
                    raise self.refused(error) from error
                continue
            if not hasattr(future, "add_done_callback"):
                raise ExecutorError(
                    f"the submit of {self.word} returned {type(future).__name__}, which is no "
                    "concurrent.futures.Future. Have it return one that is told of the answer."
                )
            return future
        raise AssertionError("not reached")

    def renew(self) -> bool:
        """Makes the executor anew if it is ours, and takes no more work."""
        if self.make is not None and (self.broken or is_shut_down(self.executor)):
            self.executor = self.make()
            return True
        return False

    @property
    def broken(self) -> bool:
        """Whether the executor says that a worker of it has ended, and all of it with it."""
        flags = getattr(self.executor, "_flags", None)  # loky's
        return bool(getattr(flags, "broken", None) or getattr(self.executor, "_broken", False))

    def cancel(self, future: concurrent.futures.Future | None) -> bool:
        """Takes back what nobody has begun; says whether it did.

        Not from a pool that is breaking: it fails each of its futures in turn, and Python 3.11's
        ends in the middle of that, with other callers waiting for ever, where one is cancelled. (It
        does so for one that was cancelled shortly before, too, by whomever.)
        """
        return future is not None and not self.broken and future.cancel()

    def refused(self, error: BaseException) -> ExecutorError:
        """What to tell where the executor did not take work."""
        said = describe(error)
        if self.lost_worker(error):
            what = f"is broken ({said})"
        elif is_shut_down(self.executor) or "after shutdown" in said:
            what = "is shut down and takes no more work"
        else:
            what = f"does not take work ({said})"
        return ExecutorError(
            f"{self.word} {what}. Make another one, register the callback with it, and keep it "
            "open as long as the callback is used."
        )

    def connection_error(self) -> ExecutorError | None:
        """What to tell where it has lost what it was connected to; None: it has not."""
        wrong = self.gone()
        if not wrong:
            return None
        return ExecutorError(f"{self.word}: {wrong}. Start it again, and connect to it.")

    @staticmethod
    def lost_worker(error: BaseException) -> bool:
        """Whether `error`, of a future, says that a worker has ended."""
        names = {kind.__name__ for kind in type(error).__mro__}
        return bool(_LOST & {*names, getattr(error, "ename", "")})  # ipyparallel wraps it
