"""The elements of one crossing, run by an executor: sent in chunks, answered in the order of calls."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jupyter_jaxcb_worker import Chunk, ChunkOutcome, Task, run_elements, unpickled

from ..core import ExecutorOptions, add_note
from ..dispatch import NOT_CALLED
from ..errors import NotCalledError
from ..results import ResultError
from ._board import ElementMark, board
from ._chunks import ChunkQueue, ElementCost, OperandSlices
from ._engine import Engine, ExecutorError
from ._flight import SubmittedChunk, await_end, lost_error, lost_ran
from ._stuck import end_stuck_worker, is_deadlocked, runs_on_this_thread

_POLL_SECONDS = 0.05
_GONE_SECONDS = 3.0  # after which what an engine is connected to is given up, without a timeout
_numbers = itertools.count(1)


class SpreadRun:
    """Runs the calls of one crossing.

    Args:
        engine: where.
        task: the host function.
        elements: the operands.
        spread: the options.
        pace: what a batch element costs.
        guard: empty when an interrupt has taken the batch elements away.
        clock: of the recorder, or any.
        stamped: whether each batch element's times are wanted.
        structured: see `Chunk`.
        record: told of every chunk that came back, also when the run is over.

    Raises:
        ExecutorError: the engine has lost what it was connected to.
    """

    def __init__(
        self,
        engine: Engine,
        task: Task,
        elements: OperandSlices,
        spread: ExecutorOptions,
        pace: ElementCost,
        guard: bytearray,
        *,
        clock: Callable[[], int],
        stamped: bool,
        structured: Callable[[Sequence[Any]], tuple[Any, Any]] | None,
        record: Callable[[SubmittedChunk, ChunkOutcome], None],
    ) -> None:
        self._engine, self._task, self._elements, self._spread = engine, task, elements, spread
        self._pace, self._guard, self._clock = pace, guard, clock
        self._stamped, self._structured, self._record = stamped, structured, record
        self._workers = engine.workers
        self._parts = ChunkQueue(elements.count, spread, pace, self._workers, engine.target_ns)
        self._tries: collections.Counter[int] = collections.Counter()  # failed, by call
        self.flights: dict[int, SubmittedChunk] = {}  # that are sent and not back
        self._back: queue.SimpleQueue[tuple[SubmittedChunk, bool | None]] = queue.SimpleQueue()
        self._ready: dict[int, Sequence[Any]] = {}  # answers, by the first call
        self._failed: tuple[int, BaseException] | None = None  # the first call that failed for good
        self._broken: BaseException | None = None  # the user's executor, for good
        self.failed: int | None = None  # a call whose error was raised before its turn
        self._over, self._lock = False, threading.Lock()  # of that: nothing comes back unheard
        self._gone_since: float | None = None
        wrong = engine.connection_error()
        if wrong is not None:
            raise wrong

    def results(self) -> Iterator[Any]:
        """Of the calls, in their order; raises what the first of them raised that failed."""
        call = 0
        try:
            while call < self._elements.count:
                if not self._guard:
                    raise NotCalledError(NOT_CALLED)
                piece = self._ready.pop(call, None)
                if piece is not None:
                    yield from unpickled(piece, self._task.numbers)
                    call += len(piece)
                elif self._failed is not None and self._failed[0] == call:
                    raise self._failed[1]
                else:
                    self._send()
                    self._wait()
        finally:
            self._end()

    def _send(self) -> None:
        """Hands over as much as the workers need to be busy."""
        if self._broken is not None:
            if not self.flights:
                self.failed, error = self._failed or (None, self._engine.refused(self._broken))
                raise error
            return
        ahead = (
            self._engine.ahead if self._pace.mean_ns is not None or self._spread.chunksize else 1
        )
        while len(self.flights) < ahead * self._workers:
            part = self._parts.next(None if self._failed is None else self._failed[0])
            if part is None:
                return
            try:
                self._submit(*part)
            except ExecutorError as error:
                if not self.flights:
                    raise
                self._broken = error.__cause__ or error  # worker broke it is in flight
                return
            if runs_on_this_thread(self._engine):
                self._help()

    def _submit(self, start: int, stop: int) -> None:
        known = board() if self._engine.travels else None
        chunk = Chunk(
            next(_numbers),
            stop - start,
            self._elements.cut(start, stop),
            self._structured,
            timeout=self._spread.timeout,
            clock=self._clock,
            stamped=self._stamped,
            board=known.take() if known else None,
            engine=self._engine,
            by_value=self._engine.by_value,
        )
        flight = SubmittedChunk(start, stop, chunk, self._clock())
        try:
            flight.future = self._engine.submit(run_elements, self._task, chunk)
        except ExecutorError:
            flight.release()
            raise
        self.flights[chunk.number] = flight
        flight.future.add_done_callback(lambda future: self._came(flight))

    def _came(self, flight: SubmittedChunk) -> None:
        """On a thread of the executor's, before it does anything about a lost worker."""
        flight.received_ns = self._clock()
        future = flight.future
        error = None if future is None or future.cancelled() else future.exception()
        if isinstance(error, concurrent.futures.BrokenExecutor):
            await_end(list(self.flights.values()))
        ended = None if error is None else flight.worker_ended(error, self._engine.marks)
        with self._lock:
            over = self._over
            if not over:
                self._back.put((flight, ended))
        if over:
            self._late(flight)

    def _late(self, flight: SubmittedChunk) -> None:
        """A chunk that was running when the run was over: its calls were made all the same."""
        future = flight.future
        if future is not None and not future.cancelled() and future.exception() is None:
            self._record(flight, future.result())
        flight.release()

    def _wait(self) -> None:
        """Until something comes back, or it is time to look around."""
        if not self.flights:
            return
        try:
            flight, ended = self._back.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            self._look()
            return
        self._landed(flight, ended)

    def _landed(self, flight: SubmittedChunk, ended: bool | None) -> None:
        future = flight.future
        mark = flight.mark
        self._engine.marks |= mark is not None
        flight.release()
        if self.flights.pop(flight.chunk.number, None) is None or future is None:
            return
        if future.cancelled():
            raise self._engine.connection_error() or ExecutorError(
                f"{self._engine.word} cancelled what it was to run. Was it shut down?"
            )
        error = future.exception()
        if error is None:
            self._take(flight, future.result())
        elif self._engine.lost_worker(error):
            self._lost(flight, mark, ended, error)
        else:
            raise self._engine.connection_error() or self._engine.refused(error) from error

    def _take(self, flight: SubmittedChunk, outcome: ChunkOutcome) -> None:
        """Answers, and perhaps a call that failed."""
        done = len(outcome.results)
        stamps = outcome.stamps
        if not outcome.timed_out and len(stamps) > 1:
            elements = done + (outcome.error is not None)
            self._pace.measured(elements, stamps[-1] - stamps[0])
        self._record(flight, outcome)
        if done:
            self._ready[flight.start] = outcome.results
        if outcome.error is not None:
            if outcome.trace:
                where = f"pid {outcome.worker.pid}, {outcome.worker.host}"
                add_note(outcome.error, f"raised in a worker ({where}):\n{outcome.trace}")
            self._failing(flight.start + done, flight.stop, outcome.error)

    def _failing(self, call: int, stop: int, error: BaseException) -> None:
        """`call` failed, and those behind it in its chunk were not made."""
        self._tries[call] += 1
        allowed = self._spread.retries if self._broken is None else 0
        raised = isinstance(error, Exception) and not isinstance(error, ResultError)
        if raised and self._tries[call] <= allowed:
            self._parts.again(call, call + 1)
            self._parts.again(call + 1, stop)
            return
        if self._tries[call] > 1:
            add_note(error, f"called {self._tries[call]} times (retries={self._spread.retries})")
        if self._failed is None or call < self._failed[0]:
            self._failed = call, error
        for flight in self.flights.values():
            if flight.start > call and self._engine.cancel(flight.future):
                flight.stop = flight.start
        self.flights = {n: f for n, f in self.flights.items() if f.stop > f.start}

    def _lost(
        self,
        flight: SubmittedChunk,
        mark: ElementMark | None,
        ended: bool | None,
        error: BaseException,
    ) -> None:
        """A worker ended; `ended` says whether it is the one that outcome this chunk."""
        if isinstance(error, concurrent.futures.BrokenExecutor) and not self._engine.renew():
            self._broken = self._broken or (self._engine.make is None and error) or None
        if ended is False and not flight.killed:  # another chunk's worker ended
            self._parts.one_by_one(flight.start, flight.stop)
            return
        if flight.killed:
            found: Exception = TimeoutError(
                f"it took more than {self._spread.timeout:g} s (timeout=), and did not let its "
                "worker do anything else, which was ended"
            )
        else:
            found = lost_error(flight, mark, self._engine, error, self._spread.retries)
        found.__cause__ = error
        call = flight.start + (mark.element if mark else 0)
        part = dataclasses.replace(flight, start=call, stop=call + 1)
        self._record(part, lost_ran(part, mark, found))
        self._parts.one_by_one(flight.start, call)
        self._parts.one_by_one(call + 1, flight.stop)
        self._failing(call, call + 1, found)

    def _look(self) -> None:
        """Nothing has come back for a moment: is there still something to wait for?"""
        self._look_at_engine()
        if self._spread.timeout is not None:
            for flight in self.flights.values():
                end_stuck_worker(flight, self._spread.timeout, self._engine)
        if is_deadlocked(self._engine):
            self._help()

    def _look_at_engine(self) -> None:
        wrong, now = self._engine.connection_error(), time.monotonic()
        self._gone_since = since = None if wrong is None else self._gone_since or now
        if wrong and since and now - since >= (self._spread.timeout or _GONE_SECONDS):
            raise wrong

    def _help(self) -> None:
        """Runs a chunk that nobody has begun, here: its workers wait for what this thread makes."""
        for flight in list(self.flights.values()):
            if self._engine.cancel(flight.future):
                outcome = run_elements(self._task, flight.chunk)
                flight.received_ns = self._clock()
                del self.flights[flight.chunk.number]
                self._take(flight, outcome)
                return

    def _end(self) -> None:
        """What is not running is cancelled, the rest is left to finish."""
        with self._lock:
            self._over = True
        for flight in self.flights.values():
            self._engine.cancel(flight.future)
        while True:  # what came back before it was over
            try:
                flight, _ = self._back.get_nowait()
            except queue.Empty:
                return
            if flight.chunk.number in self.flights:
                self._late(flight)
            flight.release()
