"""Run the batch elements of one crossing in an executor, in chunks."""

from __future__ import annotations

import concurrent.futures
import contextvars
import functools
import os
import queue
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jupyter_jaxcb_worker import (
    CallFacts,
    Chunk,
    Column,
    Outcome,
    Task,
    Worker,
    executors_of_thread,
    restored,
    run_chunk,
)

from ...recording import LoweredSite, Recorder
from ...stack.call import HostFunction
from ...stack.errors import EndedError, NotCalledError, add_note, describe, is_a
from ...stack.interrupt import NOT_CALLED, end_call_in
from ...stack.trace import frames_of_threads, stack_of
from ._pools import ExecutorError, Pool, WorkerLostError, has_lost_worker

_POLL_SECONDS = 0.05
_SHARE = 4  # chunks for each worker, if the user gives no size; as in multiprocessing's Pool.map
_NAMED = 8  # batch elements that are named in a message
IN_FLIGHT: dict[concurrent.futures.Future, Chunk] = {}  # what has not come back, of all crossings


class _Here(concurrent.futures.Executor):
    """Runs work at once: the workers of the executor wait for the call that needs it."""

    _max_workers = 1

    def submit(self, function: Any, *args: Any) -> Any:  # type: ignore[override]
        future: concurrent.futures.Future = concurrent.futures.Future()
        future.set_result(function(*args))
        return future


class ChunkRun:
    """Runs the calls of one crossing.

    Args:
        pool: the executor.
        task: the host function.
        columns: the operands of all calls.
        structured: see `Chunk`.
        facts: what `call_info` returns in the calls.
        log: records calls.
        chunksize: the number of calls to send together; None to choose.
        timeout: the seconds that a chunk may take; None for no limit.

    Attributes:
        failed: the first call that has failed, and its error.
        is_known: whether that call is the one that failed; False: another one of its chunk may be.
    """

    def __init__(
        self,
        pool: Pool,
        task: Task,
        columns: Sequence[Column],
        structured: Callable[[Sequence[Any]], tuple[Any, Any]] | None,
        facts: CallFacts,
        log: Log,
        chunksize: int | None,
        timeout: float | None,
    ) -> None:
        self._executors = executors_of_thread()
        if any(pool.executor is one for one in self._executors):
            pool = Pool(_Here(), "threads")
        self._pool, self._task, self._columns, self._structured = pool, task, columns, structured
        self._facts, self._log, self._timeout = facts, log, timeout
        self._workers = pool.workers
        count = log.order.size
        # With a timeout, each call has its own: a chunk of several would need more.
        self._size = chunksize or (1 if timeout else -(-count // (_SHARE * self._workers)))
        self._next = 0  # the first call that was not submitted
        self._sent: dict[concurrent.futures.Future, Chunk] = {}
        self._back: queue.SimpleQueue[concurrent.futures.Future] = queue.SimpleQueue()
        self._more = bytearray(b"\1")  # emptied at the end, for chunks in threads of this process
        self._results: dict[int, Sequence[Any]] = {}  # by the first call
        self._looked = 0.0
        self.failed: tuple[int, BaseException] | None = None
        self.is_known = True

    def run(self, guard: bytearray) -> None:
        """Make the calls, until all have returned or one has failed.

        Args:
            guard: emptied by an interrupt, which ends the run.
        """
        try:
            while True:
                self._send(guard)
                all_sent = self.failed is not None or self._next >= self._log.order.size
                if all_sent and not self._sent:
                    return
                if not guard:
                    raise self._interrupted()
                self._receive()
        finally:
            self._more.clear()
            for future in self._sent:
                self._pool.cancel(future)

    def results(self) -> Iterator[Any]:
        """Yield the results of the calls before the first one that failed, in their order."""
        for start in sorted(self._results):
            if self.failed is None or start < self.failed[0]:
                yield from map(restored, self._results[start])

    def end_calls(self) -> None:
        """End the calls that workers still make."""
        self._end({future: chunk for future, chunk in self._sent.items() if not future.done()})

    def _send(self, guard: bytearray) -> None:
        """Submit chunks until each worker has one, or several if the workers are far away.

        With a timeout it is one: from here on, it counts for the chunk alone.
        """
        is_near = self._pool.make is not None or self._pool.travels is False
        ahead = 1 if is_near or self._timeout else _SHARE
        while guard and self.failed is None and len(self._sent) < ahead * self._workers:
            if self._next >= self._log.order.size:
                return
            chunk = self._next_chunk()
            work: tuple[Any, ...] = (run_chunk, self._task, chunk)
            if self._pool.travels is False:  # threads see the context variables of the crossing
                run = functools.partial(contextvars.copy_context().run, run_chunk)
                work = (run, self._task, chunk)
            try:
                future = self._pool.submit(*work)
            except ExecutorError as error:
                if not self._sent or not has_lost_worker(error.__cause__):
                    raise
                self._next = chunk.start
                return  # the chunks that the broken pool had come back, and say what was lost
            IN_FLIGHT[future] = self._sent[future] = chunk
            future.add_done_callback(functools.partial(self._comes_back, chunk))

    def _next_chunk(self) -> Chunk:
        start = self._next
        self._next = stop = min(start + self._size, self._log.order.size)
        columns = [
            Column(array, None if rows is None else rows[start:stop])
            for array, rows in self._columns
        ]
        facts, clock = self._facts.cut(start, stop), self._log.clock
        chunk = Chunk(stop - start, columns, self._structured, facts, clock)
        chunk.start, chunk.more, chunk.crossing = start, self._more, self._log.crossing
        chunk.executors = (*self._executors, self._pool.executor)
        chunk.sent_ns, chunk.began = clock(), time.monotonic()
        return chunk

    def _comes_back(self, chunk: Chunk, future: concurrent.futures.Future) -> None:
        """Record the calls of a chunk, on the executor's thread, also when the run is over."""
        try:
            if not future.cancelled() and future.exception() is None:
                self._log.record(chunk, future.result())
        finally:
            IN_FLIGHT.pop(future, None)
            self._back.put(future)

    def _receive(self) -> None:
        """Wait for a chunk, and take what came of it; look after the others from time to time."""
        now = time.monotonic()
        if now - self._looked > _POLL_SECONDS:
            self._looked = now
            self._pool.check_connection()
            self._look_for_late(now)
        try:
            future = self._back.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            return
        chunk = self._sent.pop(future, None)
        if chunk is None:
            return
        if future.cancelled():
            self._pool.check_connection()
            raise ExecutorError(
                f"{self._pool.word} cancelled the work it was given. Keep it open while the "
                "callback is in use."
            )
        error = future.exception()
        if error is None:
            self._take(chunk, future.result())
        elif has_lost_worker(error):
            self._lose(chunk, error)
        else:
            raise self._pool.error(error) from error

    def _take(self, chunk: Chunk, outcome: Outcome) -> None:
        self._results[chunk.start] = outcome.results
        if outcome.error is None:
            return
        if outcome.trace:
            where = f"pid {outcome.worker.pid}, {outcome.worker.host}"
            add_note(outcome.error, f"raised in a worker ({where}):\n{outcome.trace}")
        self._fail(chunk.start + len(outcome.results), outcome.error)

    def _fail(self, call: int, error: BaseException, is_known: bool = True) -> None:
        """Note that `call` has failed: only what was called before it is waited for now."""
        if self.failed is None or call < self.failed[0]:
            self.failed, self.is_known = (call, error), is_known
        for future, chunk in list(self._sent.items()):
            if chunk.start > self.failed[0]:
                self._pool.cancel(future)
                del self._sent[future]

    def _lose(self, chunk: Chunk, error: BaseException) -> None:
        """Fail the chunk of a worker that died.

        A pool of several processes breaks as a whole, and does not say which chunk its worker had.
        """
        breaks = self._pool.make is None and is_a(error, concurrent.futures.BrokenExecutor)
        lost = [chunk]
        if breaks:
            done = (future for future in self._sent if future.done())
            returned = {future for future in done if future.exception() is None}
            lost += [one for future, one in self._sent.items() if future not in returned]
            self._sent = {future: self._sent[future] for future in returned}
        calls = sorted(call for one in lost for call in one.calls)
        words = f"a worker of {self._pool.word} died while it ran {self._log.words(calls)}."
        if breaks:
            words = (
                f"one of the workers of {self._pool.word} died, which had "
                f"{self._log.words(calls)}. The executor is broken: replace it with a new one."
            )
        found = WorkerLostError(words)
        found.__cause__ = error
        self._log.record_end(chunk, found)
        self._fail(calls[0], found, len(calls) == 1)

    def _look_for_late(self, now: float) -> None:
        """Fail the first chunk that takes longer than the timeout, and end its worker."""
        for future, chunk in sorted(self._sent.items(), key=_start_of):
            if self._pool.make is not None and not future.running():
                chunk.began = now  # it waits for a worker that starts, or that others use
            elif self._timeout is not None and now - chunk.began > self._timeout:
                del self._sent[future]
                words = f"took more than {self._timeout:g} s (timeout=)"
                error = TimeoutError(f"{self._log.words(chunk.calls)} {words}")
                self._log.record_end(chunk, error)
                self._end({future: chunk})
                chunk.crossing = None  # its call is recorded, even if it never returns
                self._fail(chunk.start, error, chunk.count == 1)
                return

    def _interrupted(self) -> BaseException:
        """Return the error of the first call that is missing: a worker may be in it."""
        first, has_begun = self._next, False
        for future, chunk in self._sent.items():
            if chunk.start < first:
                first, has_begun = chunk.start, future.running()
        error = EndedError() if has_begun else NotCalledError(NOT_CALLED)
        self.failed = first, error
        return error

    def _end(self, ended: Mapping[concurrent.futures.Future, Chunk]) -> None:
        """End what workers run: in threads by an exception, see `end_call_in`."""
        for thread, innermost in frames_of_threads().items():
            for frame in stack_of(innermost):
                if frame.f_code is _RUN and frame.f_locals["chunk"] in ended.values():
                    end_call_in(thread, {_RUN})
        self._pool.replace_workers(list(ended))


def _start_of(sent: tuple[concurrent.futures.Future, Chunk]) -> int:
    return sent[1].start


_RUN = run_chunk.__code__


class Log:
    """Records the calls of one crossing as its chunks come back, also when the crossing is over.

    Args:
        recorder: the recorder of the crossing.
        lowered: its site.
        host: the host function.
        order: the batch element of each call.
        before: the number of calls of the host function before.

    Attributes:
        clock: that of the recorder, or any other.
        crossing: what is known of the crossing to who looks for running calls.
    """

    def __init__(
        self,
        recorder: Recorder | None,
        lowered: LoweredSite,
        host: HostFunction,
        order: np.ndarray,
        before: int,
    ) -> None:
        self._recorder, self._lowered, self.order = recorder, lowered, order
        self._version, self._first = host.version, [True]
        self._ended: set[Chunk] = set()
        self._made: list[range] = []  # calls that are recorded as returned
        self._crossing = -1 if recorder is None else recorder.crossing()
        self.clock = time.perf_counter_ns if recorder is None else recorder.clock
        self.crossing = {"recorder": recorder, "lowered": lowered, "host": host, "order": order,
                         "before": before}  # fmt: skip
        if recorder is not None and host.replaced:
            recorder.stale(lowered)

    def words(self, calls: Sequence[int]) -> str:
        """Name the batch elements of calls in a message."""
        elements = self.order[list(calls)].tolist()
        if elements == [-1]:
            return "the call"
        first, *others = elements
        if not others:
            return f"batch element {first}"
        if elements == list(range(first, first + len(elements))):
            return f"batch elements {first} to {elements[-1]}"
        shown = ", ".join(map(str, elements[:_NAMED]))
        return f"batch elements {shown}{', ...' if len(elements) > _NAMED else ''}"

    def record(self, chunk: Chunk, outcome: Outcome) -> None:
        """Record the calls of a chunk that came back, unless it was recorded as ended."""
        made = len(outcome.stamps) - 1
        if self._recorder is None or made < 1 or chunk in self._ended:
            return
        calls = chunk.calls[:made]
        returned = calls if outcome.error is None else calls[:-1]
        self._add(chunk, outcome.worker, self.order[calls], outcome.stamps, outcome.error)
        self._made.append(returned)

    def record_end(self, chunk: Chunk, error: BaseException) -> None:
        """Record one call for a chunk that does not come back."""
        self._ended.add(chunk)
        if self._recorder is not None:
            elements = self.order[chunk.calls] if chunk.count == 1 else np.array([-1])
            worker = Worker(socket.gethostname(), os.getpid(), -1, "a worker that did not return")
            self._add(chunk, worker, elements, [chunk.sent_ns, self.clock()], error)

    def _add(
        self,
        chunk: Chunk,
        worker: Worker,
        elements: np.ndarray,
        stamps: Sequence[int],
        error: BaseException | None,
    ) -> None:
        recorder = self._recorder
        assert recorder is not None
        rows = recorder.worker_rows(worker, elements, stamps, chunk.sent_ns, self.clock())
        rows["lowered"], rows["crossing"] = recorder.numbers[self._lowered], self._crossing
        rows["version"] = self._version
        if error is not None:
            rows["error"][-1] = recorder.error(describe(error))
        recorder.called(rows.tobytes(), first=bool(self._first and self._first.pop()))

    def end(self, failed: int | None = None, error: BaseException | None = None) -> int:
        """Return the number of the crossing; `error` belongs to the call `failed`."""
        if self._recorder is not None and failed is not None and error is not None:
            if any(failed in calls for calls in self._made):
                element = int(self.order[failed])
                self._recorder.refused(self._lowered, self._crossing, element, describe(error))
        return self._crossing
