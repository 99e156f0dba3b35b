"""The queue: crossings wait in it until one background thread makes their host calls.

All queued crossings of the process go through one queue, so their calls are made in the order of
the crossings, whichever programs and threads made these.
"""

from __future__ import annotations

import contextvars
import numbers
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import numpy as np

from ...recording import QUEUE_THREAD, ROW, LoweredSite, Recorder, add_backlog
from ...stack.errors import (
    EndedError,
    HostCallError,
    KeptError,
    error_by_number,
    failing_while,
    forget_error,
    host_call_error,
    is_a,
)
from ...stack.interrupt import end_calls
from ...stack.trace import AWAITING_ROOM, CROSSINGS, EAGER, is_below

_POLL_SECONDS = 0.01
# Host calls and the program take turns at the GIL. While the program makes crossings, the thread
# rests after each slice of its CPU time; otherwise each crossing would wait for a host call to end,
# or for `sys.getswitchinterval()`.
_SLICE_NS = 200_000
_LOOK_SECONDS = 0.000_1
_REST_SECONDS = 0.004

# A crossing in the queue, as a plain tuple, because the program's thread makes it.
Crossed = tuple[
    LoweredSite,
    int,  # the number of its host calls
    int,  # the bytes that it takes up
    Recorder | None,  # the recorder that was active when the program made the crossing,
    int,  # and when that was on the recorder's clock
    str,  # what was running then, such as a cell
    Callable[..., object],  # makes the host calls, given the operands
    contextvars.Context,  # of the thread that made it
    tuple[np.ndarray, ...],  # the operands, which own their memory
]


class QueuedCalls(Counter[str]):
    """Numbers of calls in the queue, by the name of the host function."""

    def __str__(self) -> str:
        """Return ``3 queued calls (log 2, save 1)``."""
        count = self.total()
        names = ", ".join(f"{name} {number:,}" for name, number in self.most_common())
        return f"{count:,} queued {'call' if count == 1 else 'calls'} ({names or 'none waiting'})"


class QueuedRecorder:
    """The recorder of the crossing whose calls are being made.

    Attributes:
        whole: the recorder that was active when the program made the crossing.
        crossed_ns: when that was.
        left: the number of calls that have no row yet; 0 when the crossing is over.
        counts: not those of `whole`, because the program's crossing has counted its mask.
        plain: always empty, so that each call is recorded with its time in the queue.
    """

    def __init__(self, whole: Recorder, lowered: LoweredSite, crossed_ns: int, left: int) -> None:
        self.whole, self.lowered, self.crossed_ns, self.left = whole, lowered, crossed_ns, left
        self.counts = type(whole.counts)()
        self.plain: dict[LoweredSite, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def called(self, rows: bytes, first: bool = True) -> None:
        """As `Recorder.called`, but not for what a worker returns after the crossing is over."""
        with queue.lock:
            if self.left:
                self.whole.called(rows, first)
                self.left -= len(rows) // ROW.itemsize


class Queue:
    """A first-in, first-out queue with a limit in bytes, and the thread that empties it.

    Crossings are numbered as they are added. To wait for those so far is to wait for the number of
    the last one, a *mark*.

    Not a `queue.Queue`, whose lock would double the time of a crossing. What the program's thread
    does with each crossing, `has_room` and `add`, takes no lock while the queue's thread is awake.

    Attributes:
        limit_bytes: there is no room beyond it, except for a single crossing.
        lock: no call is recorded while another thread holds it, see `Backlog`.
        recorder: records the call that is being made; None if nothing does.
        dropped: the calls that were dropped unrecorded, because the queue was full.
    """

    def __init__(self) -> None:
        self.limit_bytes = 256 << 20
        self.begin()

    def begin(self) -> None:
        """Begin anew: in a forked process, the thread and the calls are those of the parent."""
        # Reentrant: a destructor run by the garbage collector may call a program that comes here.
        self.lock = threading.Condition()
        self._thread: threading.Thread | None = None
        self._sleeps = True  # whether the thread waits for a crossing, or does not run
        self._items: deque[Crossed] = deque()
        self._bytes = 0  # of the items
        self._running = False  # whether the calls of a crossing are being made
        self.recorder: QueuedRecorder | None = None
        self._over = 0  # number of crossings whose calls were made or dropped
        self._awaited = 0  # the last mark
        self.dropped = QueuedCalls()
        self._failed: KeptError | None = None  # the first one that was not reported,
        self._failed_later = 0  # and the number of the others

    def is_own_thread(self) -> bool:
        """Return whether this is the thread that makes the host calls."""
        return self._thread is threading.current_thread()

    def is_busy(self) -> bool:
        """Return whether anything is queued or running, or a failure is to be reported."""
        with self.lock:
            return self._running or bool(self._items or self._failed)

    def has_room(self, nbytes: int) -> bool:
        """Return whether a crossing of that size fits."""
        return self._bytes + nbytes <= self.limit_bytes or not self._items

    def add(self, crossed: Crossed, nbytes: int) -> None:
        """Add a crossing of that size, whether it fits or not."""
        self._bytes += nbytes  # no other thread runs between the read and the write
        self._items.append(crossed)
        if self._sleeps:
            self._wake()

    def mark(self) -> int:
        """Return the number of the last crossing; the thread does not rest until it is over."""
        with self.lock:
            self._awaited = self._over + self._running + len(self._items)
            if self._items:
                self._wake()
            return self._awaited

    def is_over(self, mark: int) -> bool:
        """Return whether the calls of the crossings up to `mark` are made or dropped."""
        return self._over >= mark

    def wait(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait until the crossings that were added so far are over.

        Return at once in a host call that comes from the queue, which would wait for itself.

        Args:
            look: called regularly, and may raise.
        """
        mark = self.mark()
        self._wait(lambda: self.is_over(mark), look)

    def wait_for_room(self, nbytes: int, look: Callable[[], None]) -> None:
        """As `wait`, until the queue `has_room`."""
        self.mark()
        self._wait(lambda: self.has_room(nbytes), look)

    def _wait(self, is_done: Callable[[], bool], look: Callable[[], None]) -> None:
        while not is_done() and not self.is_own_thread():
            look()
            with self.lock:
                if not is_done():
                    self.lock.wait(_POLL_SECONDS)

    def _wake(self) -> None:
        """Make the thread go on; start it if it does not run."""
        with self.lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=QUEUE_THREAD, daemon=True)
                self._thread.start()  # raises if Python is out of threads; in the barrier, too
            self._sleeps = False
            self.lock.notify_all()

    def _run(self) -> None:
        rested_ns = 0
        while self.is_own_thread():  # not in a process that a host function has forked
            self._make_next()
            if time.thread_time_ns() - rested_ns > _SLICE_NS:
                with self.lock:
                    before = len(self._items)
                    self._rest(_LOOK_SECONDS)
                    if len(self._items) > before:  # the program makes crossings
                        self._rest(_REST_SECONDS)
                rested_ns = time.thread_time_ns()

    def _rest(self, seconds: float) -> None:
        """Let the program run, unless somebody waits for the queue."""
        if self.is_over(self._awaited):
            self.lock.wait(seconds)

    def _make_next(self) -> None:
        """Wait for the next crossing, and make its host calls.

        Whatever a host function or the report of its error raises is kept for the next barrier.
        """
        with self.lock:
            while not self._items:
                self._sleeps = True  # before the next look: who adds a crossing now sees it
                if not self._items:
                    self.lock.wait()
                self._sleeps = False
                self._rest(_REST_SECONDS)  # more will come
            (
                lowered, calls, nbytes, whole, crossed_ns, during, make_calls, context, operands,
            ) = self._items.popleft()  # fmt: skip
            recorder = whole and QueuedRecorder(whole, lowered, crossed_ns, calls)
            self._running, self.recorder = True, recorder
            self._bytes -= nbytes
        failed = None
        with failing_while(during):
            try:
                for operand in operands:
                    operand.flags.writeable = False
                context.run(make_calls, *operands)
            except BaseException as error:
                if not is_a(error, HostCallError):
                    error = host_call_error(error, lowered, 0, None, ())
                failed = error_by_number(error.number)
                forget_error(error.number)  # JAX will not raise it
        ended = failed is not None and is_a(failed.error, EndedError)  # by `drop`
        with self.lock:
            if recorder is not None and recorder.left:
                why = "ended" if ended else "skipped"
                recorder.whole.counts.add(lowered, **{why: recorder.left})
                recorder.left = 0
            if failed is not None and not ended:
                self._failed_later += self._failed is not None
                self._failed = self._failed or failed
            self._running, self.recorder = False, None
            self._over += 1
            if self.is_over(self._awaited):
                self.lock.notify_all()

    def drop(self) -> QueuedCalls:
        """Drop what is queued, and end the call that is running if it runs Python code.

        Returns:
            The number of calls in the dropped crossings, by the name of the host function.
        """
        with self.lock:
            dropped = [self._items.popleft() for _ in range(len(self._items))]
            for lowered, calls, nbytes, recorder, *_ in dropped:
                self._bytes -= nbytes
                if recorder is not None:
                    recorder.counts.add(lowered, ended=calls)
            self._over += len(dropped)
            self.lock.notify_all()
            if self._running and not self.is_own_thread():
                end_calls(_makes_queued_calls)  # locked, so that no other call begins
        return _by_name(dropped)

    def waiting_calls(self) -> QueuedCalls:
        """Count the calls in the queue, by the name of the host function."""
        return _by_name(list(self._items))

    def left(self, recorder: Recorder, since_ns: int) -> Counter[LoweredSite]:
        """Count the calls queued since `since_ns` that `recorder` will get, by site."""
        left: Counter[LoweredSite] = Counter()
        for lowered, calls, _, reports_to, crossed_ns, *_ in list(self._items):
            if reports_to is recorder and crossed_ns >= since_ns:
                left[lowered] += calls
        now = self.recorder
        if now is not None and now.whole is recorder and now.crossed_ns >= since_ns:
            left[now.lowered] += now.left
        return left

    def take_failures(self) -> tuple[KeptError | None, int]:
        """Return the first failure that was not reported, and the number of those after it."""
        with self.lock:
            failures = self._failed, self._failed_later
            self._failed, self._failed_later = None, 0
        return failures


def _makes_queued_calls(frame: FrameType) -> bool:
    return frame.f_code in CROSSINGS and is_below({Queue._make_next.__code__}, frame)


def _by_name(crossings: Iterable[Crossed]) -> QueuedCalls:
    by_name = QueuedCalls()
    for lowered, calls, *_ in crossings:
        by_name[lowered.site.function] += calls
    return by_name


EAGER.add(Queue._make_next.__code__)
AWAITING_ROOM.add(Queue.wait_for_room.__code__)
queue = Queue()
add_backlog(queue)


def set_queue_limit(nbytes: int) -> int:
    """Set how many bytes the queue of queued callbacks may hold; 256 MB at first.

    Each crossing counts with its arrays and 150 bytes for each, and with at least a kilobyte. If
    there is no room for one more, the program waits, or drops its calls if the callback is
    registered with ``on_full="drop"``. One crossing always has room, however large it is.

    Args:
        nbytes: the limit in bytes, at least 0.

    Returns:
        The previous limit in bytes.

    Raises:
        ValueError: if `nbytes` is negative or not an integer.

    >>> import jupyter_jaxcb as jaxcb
    >>> before = jaxcb.set_queue_limit(64 << 20)
    >>> jaxcb.set_queue_limit(before) == 64 << 20
    True
    """
    if not isinstance(nbytes, numbers.Integral) or isinstance(nbytes, bool) or nbytes < 0:
        raise ValueError(f"{nbytes!r} is not a number of bytes. Try set_queue_limit(64 << 20).")
    before, queue.limit_bytes = queue.limit_bytes, int(nbytes)
    return before


def drop_queued() -> int:
    """Drop the queued host calls that have not begun, and end the one that is running.

    The running call gets an exception at its next Python instruction; C code runs until it returns.
    A recording counts the calls that are dropped.

    Returns:
        The number of calls that waited. Those of the batch that is running are not in it; they are
        dropped too, and counted in a recording.

    >>> import jupyter_jaxcb as jaxcb
    >>> jaxcb.drop_queued()
    0
    """
    return queue.drop().total()
