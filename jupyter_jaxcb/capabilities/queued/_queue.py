"""The queue: crossings wait in it until one background thread makes their host calls.

All queued crossings of the process go through one queue, so their calls are made in the order of
the crossings, whichever programs and threads made these.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...recording import QUEUE_THREAD, LoweredSite, Recorder, add_backlog
from ...stack.errors import (
    EndedError,
    HostCallError,
    KeptError,
    attribute_of,
    describe,
    error_by_number,
    forget_error,
    is_a,
)
from ...stack.interrupt import end_call_in
from ...stack.trace import AWAITING_ROOM, EAGER
from ._recorder import QueuedRecorder

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
        deliver: makes the host calls of one crossing, which are reported to the recorder.
        lowered: the site.
        nbytes: the size of a crossing's arrays; 0 if `OVERHEAD_BYTES` covers them.
        calls: the number of host calls of a crossing with certain operands.
    """

    deliver: Callable[[Crossed, QueuedRecorder | None], object]
    lowered: LoweredSite
    nbytes: int
    calls: Callable[[Sequence[np.ndarray]], int]

    @property
    def name(self) -> str:
        """The name of the host function."""
        return self.lowered.site.function


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


class Failures(NamedTuple):
    """The failed calls that have not been reported."""

    first: KeptError
    more: int  # number of later ones


class Queue:
    """A first-in, first-out queue with a limit in bytes, and the thread that empties it.

    Attributes:
        limit_bytes: there is no room beyond it, except for a single crossing.
    """

    def __init__(self) -> None:
        self.limit_bytes = LIMIT_BYTES
        self.begin()

    def begin(self) -> None:
        """Begin anew: in a forked process, the thread and the calls are those of the parent."""
        # Reentrant: a destructor run by the garbage collector may call a program that comes here.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._items: collections.deque[Crossed] = collections.deque()
        self._array_bytes = 0  # of the crossings in the queue and the one being delivered
        self._taken = 0  # crossings that left the queue, to be delivered or dropped
        self._delivering: Crossed | None = None
        self._recorder: QueuedRecorder | None = None  # of `_delivering`
        self._number = 0  # of `_delivering`, among the crossings added
        self._idle = True  # whether the thread waits for a crossing, or does not run
        self._waiting = 0  # threads that wait for deliveries
        self._thread: threading.Thread | None = None
        self._rested_ns = 0  # its CPU time when it last rested
        self._failures: Failures | None = None
        self._dropped = QueuedCalls()  # calls, because the queue was full

    def set_limit(self, nbytes: int) -> int:
        """Set `limit_bytes`; return the previous one."""
        with self._changed:
            before, self.limit_bytes = self.limit_bytes, nbytes
            self._changed.notify_all()
        return before

    @property
    def added(self) -> int:
        """The number of crossings that were added so far."""
        with self._changed:
            return self._taken + len(self._items)

    @property
    def number(self) -> int:
        """The number of the crossing whose calls are being made."""
        return self._number

    def is_own_thread(self) -> bool:
        """Return whether this is the thread that makes the host calls."""
        return self._thread is threading.current_thread()

    def has_room(self, nbytes: int) -> bool:
        """Return whether a crossing with arrays of that size fits."""
        count = len(self._items)
        used = count * OVERHEAD_BYTES + self._array_bytes
        return used + nbytes + OVERHEAD_BYTES <= self.limit_bytes or not count

    def wait_for_room(self, nbytes: int, look: Callable[[], None]) -> None:
        """Wait until `has_room`; `look` is called regularly, and may raise."""
        while not self.has_room(nbytes) and not self.is_own_thread():
            look()
            with self.waited_for(), self._changed:
                if not self.has_room(nbytes):
                    self._changed.wait(_POLL_SECONDS)

    def add(self, crossed: Crossed, nbytes: int) -> None:
        """Add a crossing with arrays of that size, whether it fits or not."""
        if nbytes:
            with self._changed:
                self._array_bytes += nbytes
        self._items.append(crossed)
        if self._idle:
            self._wake()

    def _wake(self) -> None:
        """Make the thread deliver what was added; start it if it does not run."""
        with self._changed:
            self._changed.notify_all()
            if self._thread is not None or self._start():
                self._idle = False
                return
        self._deliver_next()

    def is_done(self, number: int) -> bool:
        """Return whether the first `number` crossings are delivered or dropped.

        Whoever waits for them calls this again and again, so it starts the thread anew if that has
        died.
        """
        with self._changed:
            if self._items and self._thread is None:
                self._start()
            return number <= self._taken and not (self._delivering and self._number <= number)

    def wait(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait until the crossings that were added so far are delivered or dropped.

        Return at once in a host call that comes from the queue, which would wait for itself.

        Args:
            look: called regularly, and may raise.
        """
        number = self.added
        if self.is_own_thread():
            return
        with self.waited_for():
            while not self.is_done(number):
                look()
                with self._changed:
                    if not self.is_done(number):
                        self._changed.wait(_POLL_SECONDS)

    @contextlib.contextmanager
    def waited_for(self) -> Iterator[None]:
        """Deliver without rests while the block runs."""
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._waiting -= 1

    def drop(self) -> QueuedCalls:
        """Drop what is queued, and end the call that is running if it runs Python code.

        Returns:
            The number of calls in the dropped crossings, by the name of the host function.
        """
        with self._changed:
            dropped = [self._items.popleft() for _ in range(len(self._items))]
            self._array_bytes -= sum(source.nbytes for source, *_ in dropped)
            self._taken += len(dropped)
            self._changed.notify_all()
        thread = self._thread
        if thread is not None and thread.ident is not None and not self.is_own_thread():
            end_call_in(thread.ident)
        for source, recorder, *_, operands in dropped:
            if recorder is not None:
                recorder.queue.ended(source.lowered, source.calls(operands))
        return _by_name(dropped)

    def waiting_calls(self) -> QueuedCalls:
        """Count the calls in the queue, by the name of the host function."""
        return _by_name(list(self._items))

    @property
    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """No call is recorded while another thread holds it, see `Backlog`."""
        return self._lock

    def left(self, recorder: Recorder, since_ns: int) -> dict[LoweredSite, int]:
        """Count the calls queued since `since_ns` that `recorder` will get, by site."""
        found: Counter[LoweredSite] = Counter()
        for source, reports_to, crossed_ns, *_, operands in list(self._items):
            if reports_to is recorder and crossed_ns >= since_ns:
                found[source.lowered] += source.calls(operands)
        begun, own = self._delivering, self._recorder
        if begun is not None and own is not None and own.whole is recorder and own.left:
            found[begun[0].lowered] += own.left if own.crossed_ns >= since_ns else 0
        return dict(+found)

    def is_busy(self) -> bool:
        """Return whether anything is queued or running, or a failure is to be reported."""
        return not self.is_done(self.added) or self._failures is not None

    def take_failures(self) -> Failures | None:
        """Return the failures that have not been reported, and count them as reported."""
        with self._changed:
            failures, self._failures = self._failures, None
        return failures

    def note_dropped(self, name: str, calls: int) -> None:
        """Count the calls of a crossing that was dropped unrecorded, because the queue was full."""
        with self._changed:
            self._dropped[name] += calls

    def take_dropped(self) -> QueuedCalls:
        """Return the calls counted by `note_dropped` since the last time, by name."""
        with self._changed:
            dropped, self._dropped = self._dropped, QueuedCalls()
        return dropped

    def _start(self) -> bool:
        """Start the thread; return whether that was possible."""
        self._thread = threading.Thread(target=self._run, name=QUEUE_THREAD, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # Python is ending, or out of threads
            self._thread = None
        return self._thread is not None

    def _run(self) -> None:
        own = threading.current_thread()
        try:
            while self._thread is own:  # not in a process that a host function has forked
                self._deliver_next()
                self._rest()
        finally:  # nothing is known to end it; the next crossing or barrier starts another
            with self._changed:
                if self._thread is own:
                    self._thread, self._idle = None, True

    def _deliver_next(self) -> None:
        """Make the host calls of the next crossing; wait for one if there is none.

        Whatever a host function or the report of its error raises is kept for the next barrier.
        """
        crossed, recorder = self._take()
        source, lock, ended = crossed[0], self._lock, False
        try:
            source.deliver(crossed, recorder)
        except HostCallError as error:
            ended = was_ended(error)
            self._note_failure(error)
        except EndedError:
            ended = True
        except BaseException as error:
            traceback = attribute_of(error, "__traceback__")
            self._note(KeptError(0, error, traceback, describe(error), crossed[3]))
        finally:
            if recorder is not None and recorder.left:
                recorder.settle(source.lowered, ended=ended)
            with self._changed:
                if self._lock is lock:  # not in a process that the host function has forked
                    self._array_bytes -= source.nbytes
                    self._delivering = self._recorder = None
                if self._waiting:
                    self._changed.notify_all()

    def _take(self) -> tuple[Crossed, QueuedRecorder | None]:
        with self._changed:
            while not self._items:
                self._idle = True  # before the next look: who adds a crossing now sees it
                if not self._items:
                    self._changed.wait()
                self._idle = False
                if not self._waiting:
                    self._changed.wait(_REST_SECONDS)  # more will come
            self._taken += 1
            self._number = self._taken
            crossed = self._delivering = self._items.popleft()
            recorder = crossed[1]
            if recorder is not None:
                source, _, crossed_ns, *_, operands = crossed
                calls = source.calls(operands)
                self._recorder = QueuedRecorder(recorder, crossed_ns, calls, self._lock)
            return crossed, self._recorder

    def _note_failure(self, error: HostCallError) -> None:
        kept = error_by_number(error.number)
        forget_error(error.number)  # JAX will not raise it
        if kept is not None and not was_ended(error):
            self._note(kept)

    def _note(self, kept: KeptError) -> None:
        """Keep a failure for the next barrier, which reports the first and counts the others."""
        with self._changed:
            if self._failures is not None:
                self._failures = self._failures._replace(more=self._failures.more + 1)
            else:
                self._failures = Failures(kept, 0)

    def _rest(self) -> None:
        """Let the program run for a while, if it makes crossings and no thread waits."""
        if self._waiting or time.thread_time_ns() - self._rested_ns < _SLICE_NS:
            return
        before = self.added
        time.sleep(_LOOK_SECONDS)
        if self.added != before and self.has_room(self.limit_bytes // 2):
            time.sleep(_REST_SECONDS)
        self._rested_ns = time.thread_time_ns()


def was_ended(error: HostCallError) -> bool:
    """Return whether a call failed because it was ended by an interrupt or by `drop_queued`."""
    kept = error_by_number(error.number)
    return kept is not None and is_a(kept.error, EndedError)


def _by_name(crossings: Iterable[Crossed]) -> QueuedCalls:
    found = QueuedCalls()
    for source, *_, operands in crossings:
        found[source.name] += source.calls(operands)
    return found


EAGER.add(Queue._deliver_next.__code__)
AWAITING_ROOM.add(Queue.wait_for_room.__code__)
queue = Queue()
add_backlog(queue)
