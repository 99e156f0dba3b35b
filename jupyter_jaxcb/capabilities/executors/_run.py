"""Run the batch elements of one crossing in an executor, in chunks, and return ordered results."""

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

from jupyter_jaxcb_worker import CallFacts, Chunk, ChunkOutcome, Task, run_elements, unpickled

from ...stack.errors import EndedError, NotCalledError, add_note, is_a
from ...stack.interrupt import NOT_CALLED
from ...stack.options import Options
from ...stack.results import ResultError
from ._board import ElementMark, board
from ._chunks import ChunkQueue, ElementCost, OperandSlices
from ._engine import Engine, ExecutorError
from ._flight import SubmittedChunk, await_end, lost_error, lost_outcome
from ._stuck import end_stuck_worker, end_workers, is_deadlocked, runs_on_this_thread

_POLL_SECONDS = 0.05
_GONE_SECONDS = 3.0  # without a timeout, give up a lost connection after this
_numbers = itertools.count(1)


class SpreadRun:
    """Runs the calls of one crossing.

    Args:
        engine: the executor.
        task: the host function.
        elements: the operands.
        options: those of the callback.
        cost: the measured cost of a batch element.
        guard: emptied by an interrupt, which ends the run.
        clock: the recorder's clock, or any other.
        stamped: whether to time each batch element.
        structured: see `Chunk`.
        record: called with every chunk that comes back, even after the run has ended.
        facts: what `call_info` returns in the calls.

    Raises:
        ExecutorError: if the engine has lost its connection.
    """

    def __init__(
        self,
        engine: Engine,
        task: Task,
        elements: OperandSlices,
        options: Options,
        cost: ElementCost,
        guard: bytearray,
        *,
        clock: Callable[[], int],
        stamped: bool,
        structured: Callable[[Sequence[Any]], tuple[Any, Any]] | None,
        record: Callable[[SubmittedChunk, ChunkOutcome], None],
        facts: CallFacts,
    ) -> None:
        self._engine, self._task, self._elements, self._options = engine, task, elements, options
        self._cost, self._guard, self._clock = cost, guard, clock
        self._stamped, self._structured, self._record = stamped, structured, record
        self._facts = facts
        self._workers = engine.workers
        self._parts = ChunkQueue(
            elements.count, options.chunksize, cost, self._workers, engine.target_ns
        )
        self._tries: collections.Counter[int] = collections.Counter()  # failed tries, by call
        self.flights: dict[int, SubmittedChunk] = {}  # chunks in flight, by number
        self._returned: queue.SimpleQueue[tuple[SubmittedChunk, bool | None]] = queue.SimpleQueue()
        self._ready: dict[int, Sequence[Any]] = {}  # results, by the first call
        self._failed: tuple[int, BaseException] | None = None  # the first call out of retries
        self._broken: BaseException | None = None  # why the user's executor cannot be used again
        self.failed: int | None = None  # a call whose error was raised before its turn
        self._over, self._lock = False, threading.Lock()  # the lock guards `_over`
        # Emptied at the end: chunks that run in threads of this process make no more calls.
        self._more = bytearray(self._elements.count)
        self._gone_since: float | None = None
        wrong = engine.connection_error()
        if wrong is not None:
            raise wrong

    def results(self) -> Iterator[Any]:
        """Yield the results in call order; raise the error of the first call that failed."""
        call = 0
        try:
            while call < self._elements.count:
                if not self._guard:
                    raise self._interruption(call)
                piece = self._ready.pop(call, None)
                if piece is not None:
                    yield from unpickled(piece, self._task.numbers)
                    call += len(piece)
                elif self._failed is not None and self._failed[0] == call:
                    raise self._failed[1]
                else:
                    self._submit_chunks()
                    self._wait()
        finally:
            self._end()

    def is_running(self) -> bool:
        """Return whether workers still run calls."""
        futures = [flight.future for flight in self.flights.values()]
        return any(future is not None and not future.done() for future in futures)

    def end_workers(self) -> None:
        """End the calls that workers still run, as far as their executor allows."""
        end_workers(self.flights.values(), self._engine)

    def _interruption(self, call: int) -> EndedError:
        """Return the error of `call` after an interrupt: a worker may be running it."""
        own = [flight for flight in self.flights.values() if flight.start <= call < flight.stop]
        begun = any(flight.future is not None and flight.future.running() for flight in own)
        return EndedError() if begun else NotCalledError(NOT_CALLED)

    def _submit_chunks(self) -> None:
        """Submit enough chunks to keep the workers busy."""
        if self._broken is not None:
            if not self.flights:
                self.failed, error = self._failed or (None, self._engine.submit_error(self._broken))
                raise error
            return
        ahead = (
            self._engine.ahead if self._cost.mean_ns is not None or self._options.chunksize else 1
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
                self._broken = error.__cause__ or error  # a chunk in flight broke it
                return
            if runs_on_this_thread(self._engine):
                self._run_one_here()

    def _submit(self, start: int, stop: int) -> None:
        known = board() if self._engine.travels else None
        chunk = Chunk(
            next(_numbers),
            stop - start,
            self._elements.cut(start, stop),
            self._structured,
            timeout=self._options.timeout,
            clock=self._clock,
            stamped=self._stamped,
            board=known.take() if known else None,
            engine=self._engine,
            by_value=self._engine.by_value,
            guard=None if self._engine.travels else self._more,
            facts=self._facts.cut(start, stop),
        )
        flight = SubmittedChunk(start, stop, chunk, self._clock())
        try:
            flight.future = self._engine.submit(run_elements, self._task, chunk)
        except ExecutorError:
            flight.release()
            raise
        self.flights[chunk.number] = flight
        flight.future.add_done_callback(lambda future: self._chunk_done(flight))

    def _chunk_done(self, flight: SubmittedChunk) -> None:
        """Queue a finished chunk, on the executor's thread, before it handles a dead worker."""
        flight.received_ns = self._clock()
        future = flight.future
        error = None if future is None or future.cancelled() else future.exception()
        if error is not None and is_a(error, concurrent.futures.BrokenExecutor):
            await_end(list(self.flights.values()))
        ended = None if error is None else flight.worker_ended(error, self._engine.marks)
        with self._lock:
            over = self._over
            if not over:
                self._returned.put((flight, ended))
        if over:
            self._record_late_chunk(flight)

    def _record_late_chunk(self, flight: SubmittedChunk) -> None:
        """Record a chunk that came back after the run had ended: its calls were made."""
        future = flight.future
        if future is not None and not future.cancelled() and future.exception() is None:
            self._record(flight, future.result())
        flight.release()

    def _wait(self) -> None:
        """Wait until a chunk comes back; after `_POLL_SECONDS` check for trouble instead."""
        if not self.flights:
            return
        try:
            flight, ended = self._returned.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            self._check_workers()
            return
        self._process_chunk(flight, ended)

    def _process_chunk(self, flight: SubmittedChunk, ended: bool | None) -> None:
        future = flight.future
        mark = flight.mark
        self._engine.marks |= mark is not None
        flight.release()
        if self.flights.pop(flight.chunk.number, None) is None or future is None:
            return
        if future.cancelled():
            raise self._engine.connection_error() or ExecutorError(
                f"{self._engine.word} cancelled the work it was given. Keep it open while the "
                "callback is in use."
            )
        error = future.exception()
        if error is None:
            self._take_results(flight, future.result())
        elif self._engine.lost_worker(error):
            self._handle_lost_worker(flight, mark, ended, error)
        else:
            raise self._engine.connection_error() or self._engine.submit_error(error) from error

    def _take_results(self, flight: SubmittedChunk, outcome: ChunkOutcome) -> None:
        """Store the results of a chunk, and handle the call that failed in it, if any."""
        done = len(outcome.results)
        stamps = outcome.stamps
        if not outcome.timed_out and len(stamps) > 1:
            elements = done + (outcome.error is not None)
            self._cost.measured(elements, stamps[-1] - stamps[0])
        self._record(flight, outcome)
        if done:
            self._ready[flight.start] = outcome.results
        if outcome.error is not None:
            if outcome.trace:
                where = f"pid {outcome.worker.pid}, {outcome.worker.host}"
                add_note(outcome.error, f"raised in a worker ({where}):\n{outcome.trace}")
            self._handle_failed_call(flight.start + done, flight.stop, outcome.error)

    def _handle_failed_call(self, call: int, stop: int, error: BaseException) -> None:
        """Retry or fail `call`; the calls after it in its chunk were not made."""
        self._tries[call] += 1
        allowed = self._options.retries if self._broken is None else 0
        raised = is_a(error, Exception) and not is_a(error, ResultError)
        if raised and self._tries[call] <= allowed:
            self._parts.again(call, call + 1)
            self._parts.again(call + 1, stop)
            return
        if self._tries[call] > 1:
            add_note(error, f"called {self._tries[call]} times (retries={self._options.retries})")
        if self._failed is None or call < self._failed[0]:
            self._failed = call, error
        for flight in self.flights.values():
            if flight.start > call and self._engine.cancel(flight.future):
                flight.stop = flight.start
        self.flights = {n: f for n, f in self.flights.items() if f.stop > f.start}

    def _handle_lost_worker(
        self,
        flight: SubmittedChunk,
        mark: ElementMark | None,
        ended: bool | None,
        error: BaseException,
    ) -> None:
        """Handle a chunk that failed because a worker died.

        `ended` says whether it was the worker of this chunk; None if unknown.
        """
        if is_a(error, concurrent.futures.BrokenExecutor) and not self._engine.renew():
            self._broken = self._broken or (self._engine.make is None and error) or None
        if ended is False and not flight.killed:  # the worker of another chunk died
            self._parts.one_by_one(flight.start, flight.stop)
            return
        if flight.killed:
            found: Exception = TimeoutError(
                f"the call took more than {self._options.timeout:g} s (timeout=) and held the GIL, "
                "so its worker was killed"
            )
        else:
            found = lost_error(flight, mark, self._engine, error, self._options.retries)
        found.__cause__ = error
        call = flight.start + (mark.element if mark else 0)
        part = dataclasses.replace(flight, start=call, stop=call + 1)
        self._record(part, lost_outcome(part, mark, found))
        self._parts.one_by_one(flight.start, call)
        self._parts.one_by_one(call + 1, flight.stop)
        self._handle_failed_call(call, call + 1, found)

    def _check_workers(self) -> None:
        """Check for lost connections, stuck workers and deadlocks while nothing comes back."""
        self._check_connection()
        if self._options.timeout is not None:
            for flight in self.flights.values():
                end_stuck_worker(flight, self._options.timeout, self._engine)
        if is_deadlocked(self._engine):
            self._run_one_here()

    def _check_connection(self) -> None:
        wrong, now = self._engine.connection_error(), time.monotonic()
        self._gone_since = since = None if wrong is None else self._gone_since or now
        if wrong and since and now - since >= (self._options.timeout or _GONE_SECONDS):
            raise wrong

    def _run_one_here(self) -> None:
        """Run a pending chunk on this thread, because all workers wait for this thread."""
        for flight in list(self.flights.values()):
            if self._engine.cancel(flight.future):
                outcome = run_elements(self._task, flight.chunk)
                flight.received_ns = self._clock()
                del self.flights[flight.chunk.number]
                self._take_results(flight, outcome)
                return

    def _end(self) -> None:
        """Cancel the chunks that are not running; those in threads end after their element."""
        with self._lock:
            self._over = True
        self._more.clear()
        for flight in self.flights.values():
            self._engine.cancel(flight.future)
        while True:  # chunks that came back before `_over` was set
            try:
                flight, _ = self._returned.get_nowait()
            except queue.Empty:
                return
            if flight.chunk.number in self.flights:
                self._record_late_chunk(flight)
            flight.release()
