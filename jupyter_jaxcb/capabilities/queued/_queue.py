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
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...recording import QUEUE_THREAD, ROW, LoweredSite, Recorder, add_backlog
from ...stack.errors import (
    EndedError,
    HostCallError,
    KeptError,
    attribute_of,
    describe,
    error_by_number,
    failing_while,
    forget_error,
    is_a,
)
from ...stack.interrupt import end_call_in
from ...stack.trace import AWAITING_ROOM, EAGER

LIMIT_BYTES = 256 << 20
OVERHEAD_BYTES = 1_000  # of a crossing in the queue with small arrays
_POLL_SECONDS = 0.05
# Host calls and the program take turns at the GIL. While the program makes crossings, the thread
# rests after each slice of its CPU time; otherwise each crossing would wait for a host call to end,
# or for `sys.getswitchinterval()`.
_SLICE_NS = 200_000
_LOOK_SECONDS = 0.000_1
_REST_SECONDS = 0.004


class Source(NamedTuple):
    """One queued site in one program: what all of its crossings share.

    Attributes:
        lowered: the site.
        make_calls: makes the host calls of one crossing.
        calls: returns the number of host calls of a crossing with certain operands.
        nbytes: the size of a crossing's arrays; 0 if `OVERHEAD_BYTES` covers them.
    """

    lowered: LoweredSite
    make_calls: Callable[..., object]
    calls: Callable[[Sequence[np.ndarray]], int]
    nbytes: int


# A crossing in the queue: its site; the recorder that was active when the program made it, and when
# that was on the recorder's clock; what was running then, such as a cell; the context variables of
# the thread that made it; and its operands, which own their memory. A plain tuple, because it is
# built in the crossing.
Crossed = tuple[Source, Recorder | None, int, str, contextvars.Context, tuple[np.ndarray, ...]]


class QueuedCalls(Counter[str]):
    """Numbers of calls in the queue, by the name of the host function."""

    def __str__(self) -> str:
        """Return ``3 queued calls (log 2, save 1)``."""
        count = self.total()
        names = ", ".join(f"{name} {number:,}" for name, number in self.most_common())
        return f"{count:,} queued {'call' if count == 1 else 'calls'} ({names or 'none waiting'})"


class QueuedRecorder:
    """A recorder, as the crossing reports to it that comes out of the queue.

    A call leaves `left` in the instant in which it gets its row, so each call of the crossing is in
    one of both.

    Attributes:
        whole: the recorder that was active when the program made the crossing.
        crossed_ns: when the program made the crossing.
        left: the number of its calls that are not recorded; None: the crossing is over.
        counts: not those of `whole`, because the program's crossing has counted its mask.
        plain: always empty, so that each call is recorded with its time in the queue.
    """

    def __init__(self, whole: Recorder, crossed_ns: int, left: int, lock: Any) -> None:
        self.whole, self.crossed_ns, self._lock = whole, crossed_ns, lock
        self.left: int | None = left
        self.counts = type(whole.counts)()
        self.plain: dict[LoweredSite, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    def called(self, rows: bytes, first: bool = True) -> None:
        """As `Recorder.called`, but not for what a worker returns after the crossing is over."""
        with self._lock:
            if self.left is not None:
                self.whole.called(rows, first)
                self.left -= len(rows) // ROW.itemsize

    def over(self, lowered: LoweredSite, *, ended: bool) -> None:
        """Count what is `left` of the crossing: its calls will not be made."""
        with self._lock:
            if self.left:
                self.whole.counts.add(lowered, **{"ended" if ended else "skipped": self.left})
            self.left = None


class Queue:
    """A first-in, first-out queue with a limit in bytes, and the thread that empties it.

    Besides crossings it holds marks, which are set in their turn: when the calls of all crossings
    before them are made.

    Not a `queue.Queue`, whose lock would double the time of a crossing. What the program's thread
    does with each crossing, `has_room` and `add`, takes no lock while the queue's thread is awake.

    Attributes:
        limit_bytes: there is no room beyond it, except for a single crossing.
        recorder: records the call that is being made; None if nothing does.
        lock: no call is recorded while another thread holds it, see `Backlog`.
        dropped: the calls that were dropped unrecorded, because the queue was full.
    """

    def __init__(self) -> None:
        self.limit_bytes = LIMIT_BYTES
        self.begin()

    def begin(self) -> None:
        """Begin anew: in a forked process, the thread and the calls are those of the parent."""
        self.recorder: QueuedRecorder | None = None
        # Reentrant: a destructor run by the garbage collector may call a program that comes here.
        self.lock = threading.RLock()
        self.dropped = QueuedCalls()
        self._changed = threading.Condition(self.lock)
        self._items: deque[Crossed | threading.Event] = deque()
        self._delivering: Crossed | None = None
        self._array_bytes = 0  # of the crossings in the queue and the one being delivered
        self._idle = True  # whether the thread waits for a crossing, or does not run
        self._marks = 0  # that are not set: somebody waits for the crossings before them
        self._thread: threading.Thread | None = None
        self._rested_ns = 0  # its CPU time when it last rested
        self._failed: KeptError | None = None  # the first one that was not reported,
        self._failed_later = 0  # and the number of the others

    def is_own_thread(self) -> bool:
        """Return whether this is the thread that makes the host calls."""
        return self._thread is threading.current_thread()

    def is_busy(self) -> bool:
        """Return whether anything is queued or running, or a failure is to be reported."""
        with self.lock:
            return bool(self._items or self._delivering or self._failed)

    def has_room(self, nbytes: int) -> bool:
        """Return whether a crossing with arrays of that size fits."""
        count = len(self._items)
        used = count * OVERHEAD_BYTES + self._array_bytes
        return used + nbytes + OVERHEAD_BYTES <= self.limit_bytes or not count

    def add(self, item: Crossed | threading.Event, nbytes: int = 0) -> None:
        """Add a crossing with arrays of that size, whether it fits or not, or a mark."""
        if nbytes:
            with self.lock:
                self._array_bytes += nbytes
        self._items.append(item)
        if self._idle:
            self._wake()

    def mark(self) -> threading.Event:
        """Return a mark behind the crossings that were added so far."""
        mark = threading.Event()
        with self._changed:
            if not self._items and self._delivering is None:
                mark.set()  # whoever looks at once sees that nothing is queued
                return mark
            self._marks += 1
            self._changed.notify_all()  # ends a rest
        self.add(mark)
        return mark

    def wait(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait until the crossings that were added so far are delivered or dropped.

        Return at once in a host call that comes from the queue, which would wait for itself.

        Args:
            look: called regularly, and may raise.
        """
        if not self.is_own_thread():
            mark = self.mark()
            while not mark.is_set():
                look()
                mark.wait(_POLL_SECONDS)

    def wait_for_room(self, nbytes: int, look: Callable[[], None]) -> None:
        """Wait until `has_room`; `look` is called regularly, and may raise."""
        while not self.has_room(nbytes) and not self.is_own_thread():
            look()
            with self._changed:
                if not self.has_room(nbytes):
                    self._changed.wait(_POLL_SECONDS)

    def _wake(self) -> None:
        """Make the thread deliver what was added; start it if it does not run."""
        with self._changed:
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=QUEUE_THREAD, daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # Python is ending, or out of threads
                    self._thread = None
            self._idle = self._thread is None
        if self._idle:
            self._deliver_next()

    def _run(self) -> None:
        while self.is_own_thread():  # not in a process that a host function has forked
            self._deliver_next()
            if time.thread_time_ns() - self._rested_ns > _SLICE_NS:
                self._rest()

    def _rest(self) -> None:
        """Let the program run for a while, if it makes crossings and nobody waits for them."""
        with self._changed:
            before = len(self._items)
            if not self._marks:
                self._changed.wait(_LOOK_SECONDS)
            grows = len(self._items) > before and self.has_room(self.limit_bytes // 2)
            if grows and not self._marks:
                self._changed.wait(_REST_SECONDS)
        self._rested_ns = time.thread_time_ns()

    def _deliver_next(self) -> None:
        """Set the next mark, or make the host calls of the next crossing; wait for one of both.

        Whatever a host function or the report of its error raises is kept for the next barrier.
        """
        with self._changed:
            while not self._items:
                self._idle = True  # before the next look: who adds a crossing now sees it
                if not self._items:
                    self._changed.wait()
                self._idle = False
                if not self._marks:
                    self._changed.wait(_REST_SECONDS)  # more will come
            item = self._items.popleft()
            if isinstance(item, threading.Event):
                self._marks -= 1
                return item.set()
            source, whole, crossed_ns, during, context, operands = self._delivering = item
            recorder = self.recorder = whole and QueuedRecorder(
                whole, crossed_ns, source.calls(operands), self.lock
            )
        failed = None
        try:
            with failing_while(during):
                context.run(source.make_calls, *operands)
        except HostCallError as error:
            failed = error_by_number(error.number)
            forget_error(error.number)  # JAX will not raise it
        except BaseException as error:
            traceback = attribute_of(error, "__traceback__")
            failed = KeptError(0, error, traceback, describe(error), during)
        ended = failed is not None and is_a(failed.error, EndedError)  # by `drop`
        if recorder is not None:
            recorder.over(source.lowered, ended=ended)
        with self._changed:
            if self._delivering is item:  # not in a process that the host function has forked
                self._array_bytes -= source.nbytes
                self._delivering = self.recorder = None
            if failed is not None and not ended:
                self._failed_later += self._failed is not None
                self._failed = self._failed or failed
            self._changed.notify_all()

    def drop(self) -> QueuedCalls:
        """Drop what is queued, and end the call that is running if it runs Python code.

        Returns:
            The number of calls in the dropped crossings, by the name of the host function.
        """
        with self._changed:
            items = [self._items.popleft() for _ in range(len(self._items))]
            dropped = crossings_in(items)
            self._items.extend(one for one in items if isinstance(one, threading.Event))
            self._array_bytes -= sum(source.nbytes for source, *_ in dropped)
            self._changed.notify_all()
        thread = self._thread
        if thread is not None and thread.ident is not None and not self.is_own_thread():
            end_call_in(thread.ident)
        for source, recorder, *_, operands in dropped:
            if recorder is not None:
                recorder.counts.add(source.lowered, ended=source.calls(operands))
        return by_name(dropped)

    def waiting_calls(self) -> QueuedCalls:
        """Count the calls in the queue, by the name of the host function."""
        return by_name(crossings_in(self._items))

    def left(self, recorder: Recorder, since_ns: int) -> Counter[LoweredSite]:
        """Count the calls queued since `since_ns` that `recorder` will get, by site."""
        left: Counter[LoweredSite] = Counter()
        for source, reports_to, crossed_ns, *_, operands in crossings_in(self._items):
            if reports_to is recorder and crossed_ns >= since_ns:
                left[source.lowered] += source.calls(operands)
        begun, own = self._delivering, self.recorder
        if begun and own and own.whole is recorder and own.crossed_ns >= since_ns:
            left[begun[0].lowered] += own.left or 0
        return +left

    def take_failures(self) -> tuple[KeptError | None, int]:
        """Return the first failure that was not reported, and the number of those after it."""
        with self.lock:
            failures = self._failed, self._failed_later
            self._failed, self._failed_later = None, 0
        return failures


def crossings_in(items: Iterable[Crossed | threading.Event]) -> list[Crossed]:
    """Return the crossings among `items`."""
    return [one for one in list(items) if not isinstance(one, threading.Event)]


def by_name(crossings: Iterable[Crossed]) -> QueuedCalls:
    """Count the calls of `crossings`, by the name of the host function."""
    calls = QueuedCalls()
    for source, *_, operands in crossings:
        calls[source.lowered.site.function] += source.calls(operands)
    return calls


EAGER.add(Queue._deliver_next.__code__)
AWAITING_ROOM.add(Queue.wait_for_room.__code__)
queue = Queue()
add_backlog(queue)


def set_queue_limit(nbytes: int) -> int:
    """Set how many bytes the queue of queued callbacks may hold; 256 MB at first.

    Each crossing counts with its arrays and another kilobyte. If there is no room for one more, the
    program waits, or drops its calls if the callback is registered with ``on_full="drop"``. One
    crossing always has room, however large it is.

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
